/** The handler in these tests is a script that logs its calls and runs runc. */

import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { limitsOf, podGroup, shares } from '../../support/control-groups.ts';
import { scratchFolder } from '../../support/lifepod.ts';
import { pod, WAIT } from '../../support/manifests.ts';
import { lifepod, record, recordAgain, useOwnEngine } from '../../support/own-engine.ts';
import { isReady } from '../../support/pods.ts';

const scratch = scratchFolder();
afterAll(() => scratch.remove());
const notes = join(scratch.path, 'second-runc.log');
useOwnEngine(() => {
  const program = join(scratch.path, 'second-runc');
  writeFileSync(program, `#!/bin/sh\necho "$@" >> ${notes}\nexec runc "$@"\n`);
  chmodSync(program, 0o700);
  writeFileSync(notes, '');
  return { options: ['--runtime-handler', `second=${program}`] };
});

const runtimeClass = (name: string, more: object): object => ({
  apiVersion: 'node.k8s.io/v1',
  kind: 'RuntimeClass',
  metadata: { name },
  handler: name,
  ...more,
});
const noted = (): string => readFileSync(notes, 'utf8');

test('a Pod with a RuntimeClass runs with the handler, the overhead and the scheduling of the class', async () => {
  await lifepod.apply(
    runtimeClass('second', {
      overhead: { podFixed: { cpu: '100m', memory: '16Mi' } },
      scheduling: { nodeSelector: { second: 'yes' }, tolerations: [{ key: 'second', operator: 'Exists' }] },
    }),
  );
  expect(await lifepod.kubectlOk('get', 'runtimeclass')).toMatch(/^NAME\s+HANDLER\s+AGE\nsecond\s+second\s/);
  await lifepod.kubectlOk('label', 'node', 'node-1', 'second=yes');
  await lifepod.kubectlOk('taint', 'node', 'node-1', 'second=yes:NoSchedule');
  const resources = { limits: { cpu: '100m', memory: '32Mi' } };
  await lifepod.apply(
    pod('second', { app: [{ name: 'app', script: WAIT, resources }], spec: { runtimeClassName: 'second' } }),
  );
  const ready = await record.until('second', isReady);
  await lifepod.kubectlOk('taint', 'node', 'node-1', 'second-');
  const id = ready.status?.containerStatuses?.[0]?.containerID?.replace('containerd://', '') ?? 'none';
  expect(noted()).toMatch(new RegExp(`create .*${id}\\n`));
  expect(ready.spec).toMatchObject({ overhead: { cpu: '100m', memory: '16Mi' }, nodeSelector: { second: 'yes' } });
  expect(limitsOf(podGroup(lifepod.dataDir, ready))).toMatchObject({
    shares: shares(204),
    quotaMicros: '20000',
    memoryBytes: String(48 * 1024 * 1024),
  });
});

test('a Pod without a RuntimeClass runs with the default handler', async () => {
  await lifepod.apply(pod('first'));
  const ready = await record.until('first', isReady);
  const id = ready.status?.containerStatuses?.[0]?.containerID?.replace('containerd://', '') ?? 'none';
  expect(noted()).not.toContain(id);
});

test('a Pod with a missing RuntimeClass is rejected, and an Event reports a missing handler', async () => {
  const refused = await lifepod.kubectlInput(
    JSON.stringify(pod('no-class', { spec: { runtimeClassName: 'none' } })),
    'apply',
    '-f',
    '-',
  );
  expect(refused.stderr).toContain('pods "no-class" is forbidden: pod rejected: RuntimeClass "none" not found');
  await lifepod.apply(runtimeClass('unknown', {}));
  await lifepod.apply(pod('no-handler', { spec: { runtimeClassName: 'unknown' } }));
  expect(await record.event('no-handler', /FailedCreatePodSandBox/)).toContain(
    'no runtime for "unknown" is configured',
  );
  await lifepod.delete('runtimeclass', 'second');
  await lifepod.delete('pod', 'no-handler', '--now');
});

test('an engine that restarts without options still has the runtime handler of its first start', async () => {
  await lifepod.apply(runtimeClass('second', {}));
  await lifepod.kill('SIGTERM');
  await lifepod.up([]);
  await recordAgain();
  await lifepod.apply(pod('again', { spec: { runtimeClassName: 'second' } }));
  await record.until('again', isReady);
});
