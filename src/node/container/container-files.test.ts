import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { containerOf, podOf } from '../../api/core/v1/pod/pod-fixtures.ts';
import { type PodEnvironment, podLogDirectory, subPathMount, terminationMessageFile } from './container-config.ts';
import { ContainerConfigError } from './container-config-error.ts';
import { createRunRemoval, prepareContainer } from './container-files.ts';

const environmentIn = (folder: string): PodEnvironment => ({
  nodeName: 'n',
  hostIps: ['192.0.2.1'],
  podIps: ['10.0.0.7'],
  allocatable: {},
  services: [],
  configMap: () => undefined,
  secret: () => undefined,
  memoryCapacityBytes: 1,
  volumePath: (name) => join(folder, 'volumes', name),
  dns: { clusterDns: [], clusterDomain: 'cluster.local', host: { servers: [], searches: [], options: [] } },
  podDirectory: join(folder, 'pod'),
  logsRoot: join(folder, 'logs'),
  seccompRoot: '',
});

test('prepareContainer() rewrites /etc/hosts if its content differs, and leaves it untouched otherwise', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'lifepod-files-'));
  try {
    const env = environmentIn(folder);
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
    // A file that a container has grown to 512 MiB is not read into memory.
    const kibibytes = process.resourceUsage().maxRSS;
    truncateSync(hosts, 2 ** 29);
    await prepare();
    expect(readFileSync(hosts, 'utf8')).toBe(text);
    expect(process.resourceUsage().maxRSS - kibibytes).toBeLessThan(2 ** 18);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('prepareContainer() creates the files that the Pod needs, and no others', async () => {
  const root = mkdtempSync(join(tmpdir(), 'lifepod-files-'));
  try {
    const prepare = async (name: string, hostNetwork: boolean, podIps: string[], path?: string): Promise<string> => {
      const folder = join(root, name);
      const container = containerOf('app', { terminationMessagePath: path });
      const env = { ...environmentIn(folder), podIps };
      await prepareContainer(podOf({ hostNetwork }), container, 0, env, new AbortController().signal);
      return join(folder, 'pod');
    };
    const ofHost = await prepare('host', true, []);
    const hosts = `# Kubernetes-managed hosts file (host network).\n${readFileSync('/etc/hosts', 'utf8')}`;
    expect(readFileSync(join(ofHost, 'etc-hosts'), 'utf8')).toBe(hosts);
    const withMessage = await prepare('message', false, [], '/dev/termination-log');
    expect(existsSync(join(withMessage, 'etc-hosts'))).toBe(false);
    const file = terminationMessageFile(withMessage, 'app', 0);
    expect(statSync(file).mode & 0o7777).toBe(0o666);
    const without = await prepare('none', false, ['10.0.0.7'], '');
    expect(readdirSync(without)).toEqual(['etc-hosts']);
  } finally {
    rmSync(root, { recursive: true });
  }
});

test('prepareContainer() mounts the subPaths of volumes at a file or folder of the same type, and explains failures', async () => {
  const root = mkdtempSync(join(tmpdir(), 'lifepod-files-'));
  // Nothing is mounted, because the program mount(8) is not found.
  vi.stubEnv('PATH', join(root, 'bin'));
  try {
    const env = environmentIn(root);
    mkdirSync(join(root, 'volumes/v/folder'), { recursive: true });
    writeFileSync(join(root, 'volumes/v/file'), '');
    symlinkSync(root, join(root, 'volumes/v/link'));
    const prepare = (subPath: string, stop = new AbortController()): Promise<void> => {
      const whole = { name: 'v', mountPath: '/whole' };
      const volumeMounts = [whole, { ...whole, mountPath: '/part', subPath }];
      return prepareContainer(podOf(), containerOf('app', { volumeMounts }), 0, env, stop.signal);
    };
    const failure = (step: string): Error =>
      new ContainerConfigError(`failed to ${step} for volumeMount "v" of container "app"`);
    await prepare('');
    const target = subPathMount(env.podDirectory, 'v', 'app', 1);
    for (const subPath of ['folder', 'file']) {
      await expect(prepare(subPath)).rejects.toThrow(failure('prepare subPath'));
      expect(statSync(target).isDirectory()).toBe(subPath === 'folder');
      rmSync(target, { recursive: true });
    }
    expect(existsSync(subPathMount(env.podDirectory, 'v', 'app', 0))).toBe(false);
    await expect(prepare('link')).rejects.toThrow(failure('prepare subPath'));
    await expect(prepare('link/new')).rejects.toThrow(failure('create subPath directory'));
    const stop = new AbortController();
    stop.abort();
    await expect(prepare('link', stop)).rejects.toThrow('link is outside the volume');
  } finally {
    vi.unstubAllEnvs();
    rmSync(root, { recursive: true });
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
