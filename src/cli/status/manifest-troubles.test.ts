import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { manifestsFolder } from '../../node/static-pods/static-pods.ts';
import { manifestTroubles } from './manifest-troubles.ts';

test('lifepod status reports a manifest that is no Pod, but neither an empty one nor one that only has warnings', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'lifepod-manifests-'));
  onTestFinished(() => rmSync(dataDir, { recursive: true }));
  expect(await manifestTroubles(dataDir, 'n', 0)).toEqual([]);
  const folder = manifestsFolder(dataDir);
  mkdirSync(folder);
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web' }, spec: { containers: [], colour: 'red' } };
  pod.spec.containers.push({ name: 'a', image: 'i' } as never);
  for (const [file, text] of [
    ['bad.yaml', 'bad'],
    ['new.yaml', ''],
    ['odd.yaml', JSON.stringify(pod)],
  ] as const)
    writeFileSync(join(folder, file), text);
  expect(await manifestTroubles(dataDir, 'n', 0)).toEqual([
    { file: 'bad.yaml', message: "couldn't parse as pod: it is not an object" },
  ]);
});
