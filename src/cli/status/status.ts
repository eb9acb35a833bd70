/** `lifepod status`: prints versions, memory use and problems. The exit code is 1 if the engine is not running or does not answer. */
import { podSummary } from '../../api/core/v1/pod/status/summary.ts';
import type { Node, Pod } from '../../api/generated/types.ts';
import { NODES, PODS } from '../../api/resources.ts';
import { humanDuration } from '../../api/table.ts';
import type { Client } from '../../client/client.ts';
import { httpClient } from '../../client/http-client.ts';
import { readKubeconfig } from '../../client/kubeconfig.ts';
import { dnsProcesses, type FoundProcess, residentBytes, runtimeProcesses } from '../../engine/leftovers.ts';
import { kubeconfigPath, readEngineRecord } from '../../engine/settings.ts';
import { LIFEPOD_VERSION } from '../../engine/version.ts';
import { networkNames } from '../../network/pod-network/names.ts';
import { sharedPorts } from '../../network/proxy/other-engines.ts';
import { dataDirOwner, UserError } from '../../platform/files.ts';
import { machineClock } from '../../platform/node-js.ts';
import { processAgeMillis } from '../../platform/processes.ts';
import { certificateTroubles } from './certificates.ts';
import { diskTroubles } from './disk-troubles.ts';
import { oomRisk, readOomScores } from './oom-risk.ts';
import { podTrouble } from './pod-troubles.ts';

export async function status(dataDir: string): Promise<void> {
  const pid = dataDirOwner(dataDir);
  const record = readEngineRecord(dataDir);
  if (pid === undefined || record === undefined) {
    throw new UserError(notRunning(dataDir, record?.state));
  }
  const server = await readKubeconfig(kubeconfigPath(dataDir));
  const [nodes, pods] = await readAll(httpClient(server), pid);
  const lines = [
    [
      'lifepod',
      `${record.version ?? LIFEPOD_VERSION}, PID ${pid}, up ${humanDuration(processAgeMillis(pid))}, data in ${dataDir}`,
    ],
    ['API', `${server.server}, Kubernetes ${nodes[0]?.status?.nodeInfo?.kubeletVersion ?? 'unknown'}`],
    ...nodes.map((node) => ['node', nodeText(node)]),
    ['networks', `Pods ${record.podCidr}, Services ${record.serviceCidr}`],
    ...memoryLines(dataDir, pid),
    ['Pods', podsText(pods)],
  ];
  for (const [name = '', text] of lines) process.stdout.write(`${name.padEnd(10)}${text}\n`);
  const unhealthy = [
    ...diskTroubles(dataDir),
    ...certificateTroubles(dataDir, machineClock.now()),
    ...(await portTroubles(dataDir)),
    ...nodes.flatMap(nodeTroubles),
    ...pods.flatMap((pod) => podTrouble(pod) ?? []),
  ];
  process.stdout.write(unhealthy.length === 0 ? 'unhealthy nothing\n' : 'unhealthy\n');
  for (const line of unhealthy) process.stdout.write(`  ${line}\n`);
}

function notRunning(dataDir: string, state: 'up' | 'down' | undefined): string {
  const start = `start it with 'lifepod up --detach --data-dir ${dataDir}'`;
  if (state !== 'up') return `lifepod is not running in ${dataDir}: ${start}`;
  const containers = runtimeProcesses(dataDir).filter(({ commandLine }) => /shim/.test(commandLine[0] ?? '')).length;
  return `lifepod is not running in ${dataDir}, but ${containers} of its Pods may be: ${start}, or end them with 'lifepod down'`;
}

async function readAll(client: Client, pid: number): Promise<[Node[], Pod[]]> {
  try {
    const [nodes, pods] = await Promise.all([client.resource<Node>(NODES).list(), client.resource<Pod>(PODS).list()]);
    return [nodes.items, pods.items];
  } catch (error) {
    throw new UserError(`lifepod is running (PID ${pid}), but its API does not answer: ${(error as Error).message}`);
  }
}

function memoryLines(dataDir: string, pid: number): string[][] {
  const mebibytes = (pids: number[]): string =>
    `${Math.round(pids.reduce((sum, each) => sum + residentBytes(each), 0) / 2 ** 20)} MiB`;
  const runtime = runtimeProcesses(dataDir);
  const isShim = ({ commandLine }: FoundProcess): boolean => /shim/.test(commandLine[0] ?? '');
  const shims = runtime.filter(isShim).map((each) => each.pid);
  const daemon = runtime.filter((each) => !isShim(each)).map((each) => each.pid);
  const parts = [`engine ${mebibytes([pid])}`];
  const dns = dnsProcesses(dataDir);
  if (dns.length > 0) parts.push(`DNS ${mebibytes(dns)}`);
  if (daemon.length > 0) parts.push(`containerd ${mebibytes(daemon)}`);
  if (shims.length > 0) parts.push(`${shims.length} shims ${mebibytes(shims)}`);
  const risk = oomRisk(readOomScores(pid, daemon, shims));
  return [['memory', parts.join(', ')], ...(risk === undefined ? [] : [['warning', risk]])];
}

function nodeText(node: Node): string {
  const ready = node.status?.conditions?.find((condition) => condition.type === 'Ready')?.status === 'True';
  const runtime = node.status?.nodeInfo?.containerRuntimeVersion ?? 'no runtime';
  return `${node.metadata.name}, ${ready ? 'Ready' : 'NotReady'}, ${runtime}`;
}

function podsText(pods: readonly Pod[]): string {
  const counts = new Map<string, number>();
  for (const pod of pods) {
    const text = podSummary(pod).status;
    counts.set(text, (counts.get(text) ?? 0) + 1);
  }
  return [String(pods.length), ...[...counts].map(([text, count]) => `${count} ${text}`)].join(', ');
}

const PORTS_MILLIS = 10_000;

/** Resolves with the ports that another engine on this machine has, too; with none if this cannot be found out. */
function portTroubles(dataDir: string): Promise<string[]> {
  const { table } = networkNames({ dataDir, instance: dataDir });
  const { signal } = new AbortController();
  return sharedPorts({ name: table, signal, limitMillis: PORTS_MILLIS }).catch(() => []);
}

function nodeTroubles(node: Node): string[] {
  return (node.status?.conditions ?? [])
    .filter(({ type, status: value }) => (type === 'Ready' ? value !== 'True' : value === 'True'))
    .map(({ type, reason, message }) => `node ${node.metadata.name}: ${type}: ${reason}: ${message}`);
}
