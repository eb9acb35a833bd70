import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { podOf } from '../../api/core/v1/pod/pod-fixtures.ts';
import type { Pod } from '../../api/generated/types.ts';
import type { ContainerUsage } from '../../runtime/runtime.ts';
import { etcHostsFile, terminationMessagesFolder } from '../container/container-config.ts';
import { folderUsage } from '../usage/folder-usage.ts';
import { measure, type UsagePorts } from './usage.ts';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'lifepod-usage-'));
});
afterEach(() => rmSync(root, { recursive: true }));

const { signal } = new AbortController();
const running = (podUid: string, name: string, rootFs?: ContainerUsage['rootFs']): ContainerUsage => ({
  podUid,
  id: `${podUid}-${name}`,
  name,
  attempt: 0,
  at: 0,
  cpuNanoSeconds: 0,
  workingSetBytes: 7,
  ...(rootFs && { rootFs }),
});
const portsWith = (...usage: ContainerUsage[]): UsagePorts => ({
  containerUsage: async () => usage,
  volumePath: (_, volume) => join(root, 'volumes', volume),
  logPath: () => join(root, 'logs'),
  podPath: () => join(root, 'own'),
  unreadable: (_, error) => {
    throw error;
  },
});
const pod: Pod = podOf({
  volumes: [
    { name: 'scratch', emptyDir: {} },
    { name: 'node', hostPath: { path: '/' } },
  ],
});

test('the disk usage of a container includes its logs and its termination messages, even after it has ended', async () => {
  const own = join(root, 'own');
  const messages = terminationMessagesFolder(own);
  const files = [join(root, 'logs/app/0.log'), join(messages, 'app/0'), join(messages, 'ended/0')];
  for (const file of [
    ...files,
    join(root, 'volumes/scratch/file'),
    join(root, 'volumes/node/file'),
    etcHostsFile(own),
  ]) {
    mkdirSync(join(file, '..'), { recursive: true });
    writeFileSync(file, new Uint8Array((files.indexOf(file) + 2) * 5000));
  }
  const use = (
    await measure([pod], 'disk', portsWith(running('u1', 'app', { usedBytes: 5, inodesUsed: 3 } as never)), signal)
  ).get('u1');
  const at = (path: string) => folderUsage(path, signal);
  const [log, message, ended] = await Promise.all(files.map((file) => at(join(file, '..'))));
  const logs = { bytes: (log?.bytes ?? 0) + (message?.bytes ?? 0), inodes: 4 };
  expect(use).toEqual({
    containers: new Map<string, object>([
      ['app', { memoryBytes: 7, rootFs: { bytes: 5, inodes: 3 }, processes: undefined, logs }],
      ['ended', { memoryBytes: 0, logs: ended }],
    ]),
    volumes: new Map([['scratch', await at(join(root, 'volumes/scratch'))]]),
    etcHosts: await at(etcHostsFile(own)),
  });
  expect(use?.etcHosts?.inodes).toBe(1);
});

test.each<['memory' | 'pids', number | undefined]>([
  ['memory', undefined],
  ['pids', 0],
])('the measurement of %s counts no files', async (wanted, processes) => {
  mkdirSync(join(root, 'logs/app'), { recursive: true });
  const other = { ...pod, metadata: { ...pod.metadata, uid: 'u2' } };
  const uses = await measure([pod, other], wanted, portsWith(running('u1', 'app'), running('u3', 'app')), signal);
  const app = { memoryBytes: 7, rootFs: undefined, processes };
  expect([...uses]).toEqual([
    ['u1', { containers: new Map([['app', app]]), volumes: new Map() }],
    ['u2', { containers: new Map(), volumes: new Map() }],
  ]);
});
