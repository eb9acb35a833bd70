/** Tests the record and the files of a data folder during starts. test/e2e/own-engine/first-start.test.ts starts real engines. */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Server, ServerCredentials } from '@grpc/grpc-js';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { silentLog } from '../../platform/silent-log.ts';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import type { ResourceBackend } from '../../ports/backend.ts';
import type { RequestContext } from '../../ports/request.ts';
import { serviceOf } from '../../runtime/cri/definitions.ts';
import {
  type EngineRecord,
  readEngineRecord,
  recordOf,
  resolveSettings,
  type Settings,
  writeEngineRecord,
} from '../settings.ts';
import { openDataFolder, recordDown, type StartProgress, settledByWrites, settledRecord } from './first-start.ts';

const platform = { timers: createVirtualTimers(), log: silentLog };
let dataDir: string;
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'lifepod-first-start-'));
});
afterEach(() => rmSync(dataDir, { recursive: true, force: true }));

const path = (name: string): string => join(dataDir, name);
const settingsWith = (options: object): Settings => resolveSettings({ dataDir, ...options }, settledRecord(dataDir));
const start = (options: object): Promise<StartProgress> =>
  openDataFolder(settingsWith(options), settledRecord(dataDir), [], platform);

test('the settings of a first start count after it has succeeded', async () => {
  const progress = await start({ nodeName: 'wrong', port: 0 });
  progress.begin();
  progress.listening(7000);
  expect(readEngineRecord(dataDir)).toMatchObject({ state: 'starting', nodeName: 'wrong', port: 7000 });
  expect(settledRecord(dataDir)).toBeUndefined();
  expect(settingsWith({ nodeName: 'right' }).nodeName).toBe('right');
  progress.settle();
  expect(readEngineRecord(dataDir)).toEqual(recordOf(settingsWith({}), 7000));
  expect(() => settingsWith({ nodeName: 'right' })).toThrow('was created with --node-name wrong');
});

test('settled settings remain settled when the API server listens, and when the start fails', async () => {
  const progress = await start({ port: 0 });
  progress.begin();
  progress.settle();
  progress.listening(7000);
  await progress.undo();
  expect(settledRecord(dataDir)).toMatchObject({ state: 'up', port: 7000 });
});

test('the settings of a first start count as soon as a Pod has begun', async () => {
  const progress = await start({ nodeName: 'n' });
  progress.begin();
  expect(settledRecord(dataDir)).toBeUndefined();
  mkdirSync(path('pods'));
  expect(settledRecord(dataDir)).toBeUndefined();
  mkdirSync(path('pods/1234'));
  expect(settledRecord(dataDir)).toMatchObject({ state: 'up', nodeName: 'n' });
  expect(settledRecord(dataDir)).not.toHaveProperty('before');
  await progress.undo();
  expect(readEngineRecord(dataDir)).toEqual(recordOf(settingsWith({}), settingsWith({}).port));
});

test('a first start that is refused removes only what it has created', async () => {
  mkdirSync(path('seccomp'));
  writeFileSync(path('own'), 'mine');
  const progress = await start({});
  for (const name of ['format-version', 'lock', 'lifepod.log']) writeFileSync(path(name), '');
  for (const name of ['store', 'manifests', 'certs.d', 'sessions']) mkdirSync(path(name));
  writeFileSync(path('store/data'), '');
  writeFileSync(path('manifests/web.yaml'), '');
  await progress.undo();
  expect(readdirSync(dataDir).sort()).toEqual(['lifepod.log', 'lock', 'manifests', 'own', 'seccomp', 'sessions']);
  expect(readFileSync(path('own'), 'utf8')).toBe('mine');
});

test('a first start that is refused removes the folder that it has created', async () => {
  const progress = await openDataFolder(settingsWith({}), undefined, [dataDir], platform);
  writeFileSync(path('lock'), '');
  await progress.undo();
  expect(existsSync(dataDir)).toBe(false);
});

test('a later start that fails keeps the recorded settings, except those with which the store may have been written', async () => {
  const former = { ...recordOf(settingsWith({ recordAge: '1h' }), 7000), state: 'down' as const };
  writeEngineRecord(dataDir, { ...former, shutdown: { podsLeft: [] } });
  const serviceCidr = `${former.serviceCidr},fd00:10:96::/112`;
  const options = { recordAge: '2h', serviceCidr, encryptionProviderConfig: '/etc/keys.yaml' };
  const progress = await start(options);
  progress.begin();
  expect(readEngineRecord(dataDir)).toEqual({ ...former, state: 'up' });
  await progress.undo();
  expect(readEngineRecord(dataDir)).toEqual({ ...former, state: 'up' });
  const { encryptionProviderConfig } = options;
  progress.writing();
  expect(readEngineRecord(dataDir)).toEqual({ ...former, serviceCidr, encryptionProviderConfig, state: 'up' });
  await progress.undo();
  expect(readEngineRecord(dataDir)?.recordAge).toBe('1h');
  progress.listening(7001);
  expect(readEngineRecord(dataDir)).toMatchObject({ recordAge: '2h', port: 7001, state: 'up' });
  progress.settle();
  await progress.undo();
  expect(readEngineRecord(dataDir)).toEqual({ ...former, serviceCidr, encryptionProviderConfig, state: 'up' });
});

test('a later start that has succeeded keeps its settings when the engine stops', async () => {
  writeEngineRecord(dataDir, recordOf(settingsWith({ recordAge: '1h' }), 7000));
  const progress = await start({ recordAge: '2h' });
  progress.begin();
  progress.listening(7001);
  progress.succeed();
  await progress.undo();
  expect(readEngineRecord(dataDir)).toMatchObject({ recordAge: '2h', port: 7001 });
});

async function emptyRuntime(endpoint: string): Promise<() => void> {
  const server = new Server();
  const answer = (_call: unknown, reply: (error: null, response: object) => void): void => reply(null, {});
  const calls = Object.keys(serviceOf('runtime.v1.RuntimeService')).map((name) => [name, answer]);
  server.addService(serviceOf('runtime.v1.RuntimeService'), Object.fromEntries(calls));
  await new Promise<void>((resolve, reject) =>
    server.bindAsync(endpoint, ServerCredentials.createInsecure(), (error) => (error ? reject(error) : resolve())),
  );
  return () => server.forceShutdown();
}

test.each([
  ['returns to the former one if it has created no sandbox', true],
  ['keeps it if that runtime has died, because it may have a sandbox', false],
])('a later start that fails with another runtime %s', async (_, answers) => {
  const containerRuntimeEndpoint = `unix://${path('cri.sock')}`;
  writeEngineRecord(dataDir, recordOf(settingsWith({}), 7000));
  mkdirSync(path('pods/1234'), { recursive: true });
  const progress = await start({ containerRuntimeEndpoint });
  progress.begin();
  progress.listening(7001);
  expect(readEngineRecord(dataDir)).toMatchObject({ containerRuntimeEndpoint });
  const end = answers ? await emptyRuntime(containerRuntimeEndpoint) : undefined;
  await progress.undo().finally(() => end?.());
  const former = recordOf(settingsWith({ containerRuntimeEndpoint: '' }), 7000);
  expect(readEngineRecord(dataDir)).toEqual(answers ? former : { ...former, containerRuntimeEndpoint });
});

test('a later start that cannot restore the record does not hide the error of the start', async () => {
  writeEngineRecord(dataDir, recordOf(settingsWith({}), 7000));
  const progress = await start({ recordAge: '2h' });
  progress.begin();
  progress.listening(7001);
  rmSync(dataDir, { recursive: true });
  await expect(progress.undo()).resolves.toBeUndefined();
});

test('lifepod down during a start that is not ready keeps the former options', async () => {
  writeEngineRecord(dataDir, recordOf(settingsWith({ recordAge: '1h' }), 7000));
  const progress = await start({ recordAge: '2h', containerRuntimeEndpoint: `unix://${path('none.sock')}` });
  progress.begin();
  progress.listening(7001);
  const record = settledRecord(dataDir) as EngineRecord;
  expect(record.recordAge).toBe('2h');
  await progress.undo();
  recordDown(dataDir, record);
  const former = recordOf(settingsWith({}), 7000);
  expect(readEngineRecord(dataDir)).toEqual({ ...former, recordAge: '1h', state: 'down' });
  expect(former.containerRuntimeEndpoint).toBeUndefined();
  rmSync(path('engine.json'));
  recordDown(dataDir, record);
  expect(readEngineRecord(dataDir)).toEqual({ ...record, state: 'down' });
});

test('a write of a client settles the start before it reaches the backend, and other requests do not', async () => {
  const calls: string[] = [];
  const names = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deleteCollection'] as const;
  const methods = names.map((name) => [name, async () => void calls.push(name)]);
  const backend = settledByWrites(Object.fromEntries(methods) as ResourceBackend, () => calls.push('settle'));
  const requestFrom = (source: RequestContext['source']) => ({ source }) as RequestContext;
  const callAll = async (source: RequestContext['source']): Promise<string[]> => {
    calls.length = 0;
    for (const name of names)
      await (backend[name] as (request: RequestContext) => Promise<unknown>)(requestFrom(source));
    return [...calls];
  };
  expect(await callAll('component')).toEqual([...names]);
  expect(await callAll('client')).toEqual([
    ...['get', 'list', 'watch'],
    ...['create', 'update', 'patch', 'delete', 'deleteCollection'].flatMap((name) => ['settle', name]),
  ]);
});
