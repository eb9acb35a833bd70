import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { containerOf, podOf } from '../../api/core/v1/pod/pod-fixtures.ts';
import { type PodEnvironment, podLogDirectory } from './container-config.ts';
import { createRunRemoval, prepareContainer } from './container-files.ts';

test('prepareContainer() rewrites /etc/hosts if its content differs, and leaves it untouched otherwise', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'lifepod-files-'));
  try {
    const env: PodEnvironment = {
      nodeName: 'n',
      hostIps: ['192.0.2.1'],
      podIps: ['10.0.0.7'],
      allocatable: {},
      services: [],
      configMap: () => undefined,
      secret: () => undefined,
      memoryCapacityBytes: 1,
      volumePath: () => '',
      dns: { clusterDns: [], clusterDomain: 'cluster.local', host: { servers: [], searches: [], options: [] } },
      podDirectory: join(folder, 'pod'),
      logsRoot: join(folder, 'logs'),
      seccompRoot: '',
    };
    const hosts = join(folder, 'pod/etc-hosts');
    const prepare = async (): Promise<bigint> => {
      await prepareContainer(podOf(), containerOf('app'), 0, env, new AbortController().signal);
      return statSync(hosts, { bigint: true }).mtimeNs;
    };
    const first = await prepare();
    expect(await prepare()).toBe(first);
    const text = readFileSync(hosts, 'utf8');
    writeFileSync(hosts, 'changed by a container\n');
    await prepare();
    expect(readFileSync(hosts, 'utf8')).toBe(text);
    // Check that a file that a container has grown to 512 MiB is not read into memory.
    const kibibytes = process.resourceUsage().maxRSS;
    truncateSync(hosts, 2 ** 29);
    await prepare();
    expect(readFileSync(hosts, 'utf8')).toBe(text);
    expect(process.resourceUsage().maxRSS - kibibytes).toBeLessThan(2 ** 18);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('the removal of a run deletes its log and those of earlier runs, including rotated files, but never the last log', async () => {
  const root = mkdtempSync(join(tmpdir(), 'lifepod-files-'));
  try {
    const pod = podOf();
    const folder = join(podLogDirectory(pod, root), 'app');
    mkdirSync(folder, { recursive: true });
    const logs = ['0.log', '1.log', '1.log.20260131-093000', '1.log.20260131-092000.gz', '2.log', '10.log'];
    for (const name of [...logs, '10.log.20260131-094000']) writeFileSync(join(folder, name), '');
    const remove = createRunRemoval(() => join(root, 'pod'), root);
    const left = (): string[] => readdirSync(folder).sort();
    await remove(pod, { name: 'app', attempt: 1 });
    expect(left()).toEqual(['10.log', '10.log.20260131-094000', '2.log']);
    await remove(pod, { name: 'app', attempt: 10 });
    expect(left()).toEqual(['10.log', '10.log.20260131-094000', '2.log']);
    await remove(pod, { name: 'other', attempt: 0 });
  } finally {
    rmSync(root, { recursive: true });
  }
});
