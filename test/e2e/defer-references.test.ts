import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { podMemoryFolder } from '../../src/node/volumes/pod-memory.ts';
import { deferPod, entry, gate, logOf, openGate, POST } from '../support/defer-pods.ts';
import { isReady, runs } from '../support/pods.ts';
import { lifepod, record, test } from '../support/shared-engine.ts';

test('defer containers can read a ConfigMap and a Secret that are deleted together with their Pod', async () => {
  const refers = {
    envFrom: [{ configMapRef: { name: 'settings' } }],
    env: [{ name: 'PASSWORD', valueFrom: { secretKeyRef: { name: 'database', key: 'password' } } }],
  };
  const tells = 'echo "$HOST $PASSWORD" >>/work/log';
  const metadata = (name: string) => ({ name, namespace: lifepod.namespace });
  const application = JSON.stringify({
    apiVersion: 'v1',
    kind: 'List',
    items: [
      { apiVersion: 'v1', kind: 'ConfigMap', metadata: metadata('settings'), data: { HOST: 'db' } },
      { apiVersion: 'v1', kind: 'Secret', metadata: metadata('database'), stringData: { password: 'word' } },
      deferPod(lifepod, 'whole', [
        entry('one', `${tells}; ${gate('one')}`, refers),
        entry('two', tells, refers),
        entry('three', tells, { ...POST, ...refers }),
      ]),
    ],
  });
  await lifepod.kubectlInput(application, 'apply', '-f', '-');
  const { metadata: running } = await record.until('whole', isReady);
  const [onDisk, inMemory] = [join(lifepod.dataDir, 'pods'), podMemoryFolder(lifepod.dataDir)].map((folder) =>
    join(folder, running.uid ?? '', 'kept'),
  ) as [string, string];
  for (const file of [join(onDisk, 'configmaps/settings'), join(inMemory, 'secrets/database')])
    expect(statSync(file).mode & 0o777).toBe(0o600);

  await lifepod.kubectlInput(application, 'delete', '--wait=false', '-f', '-');
  await record.until('whole', runs('one'));
  expect(await lifepod.kubectlOk('get', 'configmap/settings', 'secret/database', '--ignore-not-found')).toBe('');
  openGate(lifepod, 'whole', 'one');
  await record.gone('whole');
  expect(logOf(lifepod, 'whole')).toEqual([
    'begin one',
    'db word',
    'end one',
    'begin two',
    'db word',
    'end two',
    'app stops',
    'begin three',
    'db word',
    'end three',
  ]);
  expect([existsSync(onDisk), existsSync(inMemory)]).toEqual([false, false]);
});
