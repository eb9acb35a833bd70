/** Reads what the data folder and the processes of a running engine show, for `lifepod status`. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { isNodeReady } from '../../api/core/v1/node/ready.ts';
import type { Node } from '../../api/generated/types.ts';
import { requireLocalEngine } from '../../engine/data-folder/engine-processes.ts';
import { isStarting } from '../../engine/data-folder/lock-line.ts';
import { lostText } from '../../engine/data-folder/lost-folder.ts';
import { unusableFolder } from '../../engine/data-folder/new-folder.ts';
import { dnsProcesses, residentBytes, runtimeProcesses } from '../../engine/leftovers.ts';
import { type EngineRecord, kubeconfigPath, readEngineRecord } from '../../engine/settings.ts';
import { LIFEPOD_VERSION } from '../../engine/version.ts';
import type { Millis } from '../../machinery/time.ts';
import { nft } from '../../network/nftables/nft.ts';
import { networkNames } from '../../network/pod-network/names.ts';
import { sharedPorts } from '../../network/proxy/other-engines.ts';
import { manifestsFolder } from '../../node/static-pods/static-pods.ts';
import { dataDirOwner, realFolder, UserError } from '../../platform/files.ts';
import { processAgeMillis } from '../../platform/processes.ts';
import { missingKubeconfig } from '../hints.ts';
import { otherFolders } from '../kubeconfig/engine-folders.ts';
import { besideService } from '../service/beside-service.ts';
import { type EngineStart, START_MILLIS, unreportedNode } from '../service/engine-start.ts';
import { engineStarts, isShim, launchedEngine, logCommand, notRunning, waysToStart } from '../service/not-running.ts';
import { runsAsService } from '../service/service-state.ts';
import { certificateTroubles } from './certificates.ts';
import { diskTroubles } from './disk-troubles.ts';
import { manifestTroubles } from './manifest-troubles.ts';
import { oomRisk, readOomScores } from './oom-risk.ts';
import { programTroubles } from './program-troubles.ts';
import type { StatusReport, Trouble } from './report.ts';

export interface EngineReading {
  kubeconfig: string;
  engine: NonNullable<StatusReport['engine']>;
  start: EngineStart;
  /** `nodes`: the Nodes that could be read. */
  troubles(nodes: readonly Node[]): Promise<Trouble[]>;
}

/**
 * Resolves with facts about the engine of the folder, which may be a link. Rejects with a UserError if the engine is not running on this
 * machine, is still starting or has no kubeconfig, and with EACCES if the user may not read the data folder.
 */
export async function readEngine(folder: string, now: Millis, ageMillis = processAgeMillis): Promise<EngineReading> {
  const dataDir = realFolder(folder);
  const pid = dataDirOwner(dataDir);
  const record = readEngineRecord(dataDir);
  if (pid === undefined) throw new UserError(stoppedText(dataDir, record));
  requireLocalEngine(dataDir, pid);
  if (isStarting(dataDir)) throw new UserError(engineStarts(dataDir, pid));
  if (record === undefined || !existsSync(kubeconfigPath(dataDir)))
    throw new UserError(missingKubeconfig(dataDir, pid));
  const messages = (kind: Trouble['kind'], texts: readonly string[]): Trouble[] =>
    texts.map((message) => ({ kind, message }));
  const upMillis = ageMillis(pid);
  const start: EngineStart = {
    nodeName: record.nodeName,
    startedAt: now - upMillis,
    now,
    runtimeEndpoint: record.containerRuntimeEndpoint,
  };
  return {
    kubeconfig: kubeconfigPath(folder),
    start,
    engine: {
      version: record.version ?? LIFEPOD_VERSION,
      commit: record.commit,
      pid,
      upMillis,
      dataDir,
      podCidr: record.podCidr,
      serviceCidr: record.serviceCidr,
      ...readMemory(dataDir, pid),
    },
    async troubles(nodes) {
      const beside = besideService(dataDir, pid, process.env);
      // An engine that is starting may not have started its DNS or written its nftables rules.
      const hasStarted = upMillis >= START_MILLIS || nodes.some((node) => isReadyNow(node, start));
      return [
        ...messages('Program', programTroubles(dataDir, pid, record.commit, process.env)),
        ...messages('Disk', diskTroubles(dataDir)),
        ...messages('Certificate', certificateTroubles(dataDir, now)),
        ...messages('Service', beside?.fails === true ? [beside.text] : []),
        ...messages('Port', await portTroubles(dataDir)),
        ...messages('Network', hasStarted ? await networkTroubles(dataDir, pid) : []),
        ...(await staticPodTroubles(dataDir, record.nodeName ?? nodes[0]?.metadata.name ?? '', now)),
      ];
    },
  };
}

/** Returns whether the engine has reported since its start that its node is ready. */
const isReadyNow = (node: Node, start: EngineStart): boolean =>
  node.metadata.name === start.nodeName && isNodeReady(node) && unreportedNode(node, start) === undefined;

async function staticPodTroubles(dataDir: string, nodeName: string, now: Millis): Promise<Trouble[]> {
  return (await manifestTroubles(dataDir, nodeName, now)).map(({ file, pod, message }) => {
    const path = join(manifestsFolder(dataDir), file);
    const what =
      pod === undefined ? 'static Pod not started or updated' : `static Pod ${pod} runs without a part of its manifest`;
    return { kind: 'StaticManifest', name: path, message: `${what}: ${path}: ${message}` };
  });
}

/** Returns the sentence about an engine that is not running. `record`: undefined if no engine has run in the folder. */
export function stoppedText(dataDir: string, record: EngineRecord | undefined): string {
  if (record === undefined) {
    const lost = lostText(dataDir);
    if (lost !== undefined) return lost;
    const launched = launchedEngine(dataDir);
    if (launched !== undefined) return engineStarts(dataDir, launched);
    const unusable = unusableFolder(dataDir);
    if (unusable !== undefined) return unusable;
    const isOnly = otherFolders(dataDir, process.env) === undefined;
    const what = existsSync(dataDir) ? 'has never run in' : 'is not running: there is no folder';
    return `lifepod ${what} ${dataDir}: ${waysToStart(dataDir, process.env)}${isOnly ? ', or name its data folder with --data-dir' : ''}`;
  }
  return notRunning(dataDir);
}

function readMemory(dataDir: string, pid: number) {
  const sum = (pids: readonly number[]): number => pids.reduce((bytes, each) => bytes + residentBytes(each), 0);
  const runtime = runtimeProcesses(dataDir);
  const shims = runtime.filter(isShim).map((each) => each.pid);
  const daemon = runtime.filter((each) => !isShim(each)).map((each) => each.pid);
  return {
    memoryBytes: {
      engine: sum([pid]),
      dns: sum(dnsProcesses(dataDir)),
      containerd: sum(daemon),
      shims: sum(shims),
    },
    shims: shims.length,
    warning: oomRisk(readOomScores(pid, daemon, shims), runsAsService(dataDir, pid)),
  };
}

const NFT_MILLIS = 10_000;

/** Reports node ports and host ports that another engine on this machine also uses. Resolves with none if nft(8) fails. */
function portTroubles(dataDir: string): Promise<string[]> {
  const { table } = networkNames({ dataDir, instance: dataDir });
  const { signal } = new AbortController();
  return sharedPorts({ name: table, signal, limitMillis: NFT_MILLIS }).catch(() => []);
}

async function networkTroubles(dataDir: string, pid: number): Promise<string[]> {
  const log = logCommand(dataDir, pid);
  const advice = log === undefined ? 'the log of the engine says why' : `'${log}' says why`;
  const { table } = networkNames({ dataDir, instance: dataDir });
  const { signal } = new AbortController();
  const options = { name: table, signal, limitMillis: NFT_MILLIS };
  const listed = await nft(options, ['list', 'tables', 'inet']).catch((error: unknown) => error as Error);
  const rules =
    listed instanceof Error
      ? [`the rules for Services and network policies cannot be read: ${listed.message}`]
      : listed.split('\n').includes(`table inet ${table}`)
        ? []
        : [`the nftables table ${table} is missing, so that Services and network policies have no effect: ${advice}`];
  const dns =
    dnsProcesses(dataDir).length > 0 ? [] : [`the cluster DNS does not run, so that Pods find no names: ${advice}`];
  return [...dns, ...rules];
}
