import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { MIRROR_ANNOTATION } from '../../api/core/v1/pod/mirror.ts';
import type { Pod } from '../../api/generated/types.ts';
import { manifestsFolder } from '../../node/static-pods/static-pods.ts';
import { manifestOf, manifestTroubles, withManifest } from './manifest-troubles.ts';

test('lifepod status and why report what the node does not use of a manifest', async () => {
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
    { file: 'odd.yaml', pod: 'default/web-n', message: 'unknown field "spec.colour"' },
    { file: 'new.yaml', message: 'the file is empty' },
  ]);
  const explanation = { sentence: 's', evidence: ['e'], actions: [] };
  const mirror = (name: string): Pod =>
    ({
      metadata: { name, namespace: 'default', annotations: { [MIRROR_ANNOTATION]: 'u' } },
      spec: { nodeName: 'n', containers: [] },
    }) as unknown as Pod;
  const path = join(folder, 'odd.yaml');
  const manifest = await manifestOf(mirror('web-n'), dataDir, 0);
  expect(manifest?.path).toBe(path);
  expect(withManifest(explanation, manifest)).toEqual({
    sentence: 's',
    evidence: ['e', `its node ignores a part of its manifest ${path}: unknown field "spec.colour"`],
    actions: [{ description: `correct ${path}` }],
  });
  expect(await manifestOf(mirror('other-n'), dataDir, 0)).toBeUndefined();
  expect(withManifest(explanation, undefined)).toBe(explanation);
});
