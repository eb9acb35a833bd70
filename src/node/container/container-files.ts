/**
 * Each function is idempotent. The small files are created synchronously: each step takes microseconds, while asynchronous calls would
 * delay the start by milliseconds.
 */

import {
  chmodSync,
  closeSync,
  existsSync,
  fstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  writeFileSync,
} from 'node:fs';
import { mkdir, open, readdir, rm, truncate } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Container, EphemeralContainer, Pod } from '../../api/generated/types.ts';
import { uidOf } from '../../machinery/meta.ts';
import type { SandboxConfig } from '../../runtime/runtime.ts';
import { bindMount, unmountUnder } from '../volumes/mounts.ts';
import {
  containerLogPath,
  etcHostsFile,
  mountSubPath,
  type PodEnvironment,
  podHostname,
  podLogDirectory,
  subPathMount,
  terminationMessageFile,
} from './container-config.ts';
import { ContainerConfigError } from './container-config-error.ts';
import { podAddresses } from './downward.ts';
import { containerEnvironment } from './environment-variables.ts';
import { openSubPath, SubPathFolderError } from './sub-path.ts';

export function prepareSandbox(config: SandboxConfig): void {
  mkdirSync(config.logDirectory, { recursive: true, mode: 0o755 });
}

/**
 * Creates the container's files and mounts. Rejects with a ContainerConfigError if a variable of the container cannot be resolved, or if a
 * subPath is invalid or cannot be mounted.
 */
export async function prepareContainer(
  pod: Pod,
  container: Container | EphemeralContainer,
  attempt: number,
  env: PodEnvironment,
  signal: AbortSignal,
): Promise<void> {
  const logs = dirname(join(podLogDirectory(pod, env.logsRoot), containerLogPath(container.name, attempt)));
  mkdirSync(logs, { recursive: true, mode: 0o755 });
  if (podAddresses(pod, env).length > 0) await writeEtcHosts(pod, env);
  if ((container.terminationMessagePath ?? '') !== '')
    makeMessageFile(terminationMessageFile(env.podDirectory, container.name, attempt));
  const variables = containerEnvironment(pod, container, env);
  for (const [index, mount] of (container.volumeMounts ?? []).entries()) {
    const subPath = mountSubPath(mount, container.name, (name) => variables.get(name));
    if (subPath === '') continue;
    const target = subPathMount(env.podDirectory, mount.name, container.name, index);
    try {
      await mountInside(env.volumePath(mount.name), subPath, target, signal);
    } catch (error) {
      if (signal.aborted) throw error;
      const step = error instanceof SubPathFolderError ? 'create subPath directory' : 'prepare subPath';
      // Like upstream, omit the cause from the message, since the cause could disclose files of the node.
      throw new ContainerConfigError(
        `failed to ${step} for volumeMount ${JSON.stringify(mount.name)} of container ${JSON.stringify(container.name)}`,
        { cause: error },
      );
    }
  }
}

function makeMessageFile(file: string): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o750 });
  closeSync(openSync(file, 'a', 0o666));
  // Set the mode regardless of the umask, since any user in the container must be able to write the file.
  chmodSync(file, 0o666);
}

/**
 * Call the returned function after the removal of a run. It deletes the run's termination message and, if logs of later attempts exist, the
 * logs of this attempt and of earlier ones.
 */
export const createRunRemoval =
  (podDirectory: (podUid: string) => string, logsRoot: string) =>
  async (pod: Pod, { name, attempt }: { name: string; attempt: number }): Promise<void> => {
    await rm(terminationMessageFile(podDirectory(uidOf(pod)), name, attempt), { force: true });
    const folder = dirname(join(podLogDirectory(pod, logsRoot), containerLogPath(name, attempt)));
    // LOG also matches the rotated files of each log.
    const logs = (await readdir(folder).catch(() => [])).map((file) => ({ file, of: Number(LOG.exec(file)?.[1]) }));
    if (!logs.some((log) => log.of > attempt)) return;
    for (const log of logs) if (log.of <= attempt) await rm(join(folder, log.file), { force: true });
  };

const LOG = /^(\d+)\.log(?:\.|$)/;

async function writeEtcHosts(pod: Pod, env: PodEnvironment): Promise<void> {
  const file = etcHostsFile(env.podDirectory);
  const hostFile = pod.spec?.hostNetwork === true ? readFileSync('/etc/hosts', 'utf8') : '';
  const text = etcHosts(pod, env, hostFile);
  // Do not rewrite a correct file, since a container could read the file while it is incomplete.
  if (containsExactly(file, text)) return;
  // A container may have grown the file to many gigabytes. Truncate the file asynchronously, since writeFileSync() would block the event
  // loop while the kernel frees the disk space.
  if (existsSync(file)) await truncate(file);
  mkdirSync(env.podDirectory, { recursive: true, mode: 0o750 });
  writeFileSync(file, text);
  chmodSync(file, 0o644);
}

/** Compares the size first, since a container may have grown the file to any size. */
function containsExactly(file: string, text: string): boolean {
  if (!existsSync(file)) return false;
  const wanted = Buffer.from(text);
  const handle = openSync(file, 'r');
  try {
    if (fstatSync(handle).size !== wanted.length) return false;
    const actual = Buffer.alloc(wanted.length);
    readSync(handle, actual, 0, wanted.length, 0);
    return wanted.equals(actual);
  } finally {
    closeSync(handle);
  }
}

/** Formats the file as upstream's kubelet does. `hostFile`: the content of the node's /etc/hosts, used for a Pod with hostNetwork. */
export function etcHosts(pod: Pod, env: Pick<PodEnvironment, 'dns' | 'hostIps' | 'podIps'>, hostFile: string): string {
  const { hostname, domain } = podHostname(pod, env.dns.clusterDomain);
  const names = domain === '' ? hostname : `${hostname}.${domain}\t${hostname}`;
  const own =
    pod.spec?.hostNetwork === true
      ? `# Kubernetes-managed hosts file (host network).\n${hostFile}`
      : [
          '# Kubernetes-managed hosts file.',
          '127.0.0.1\tlocalhost',
          '::1\tlocalhost ip6-localhost ip6-loopback',
          'fe00::0\tip6-localnet',
          'fe00::0\tip6-mcastprefix',
          'fe00::1\tip6-allnodes',
          'fe00::2\tip6-allrouters',
          ...env.podIps.map((ip) => `${ip}\t${names}`),
          '',
        ].join('\n');
  const aliases = pod.spec?.hostAliases ?? [];
  if (aliases.length === 0) return own;
  const lines = aliases.map(({ ip, hostnames }) => `${ip}\t${(hostnames ?? []).join('\t')}\n`);
  return `${own}\n# Entries added by HostAliases.\n${lines.join('')}`;
}

async function mountInside(volume: string, subPath: string, target: string, signal: AbortSignal): Promise<void> {
  const handle = await openSubPath(volume, subPath);
  try {
    await unmountUnder(target, signal);
    await mkdir(dirname(target), { recursive: true, mode: 0o750 });
    if ((await handle.stat()).isDirectory()) await mkdir(target, { recursive: true, mode: 0o750 });
    else await (await open(target, 'a', 0o640)).close();
    await bindMount(`/proc/${process.pid}/fd/${handle.fd}`, target, signal);
  } finally {
    await handle.close();
  }
}
