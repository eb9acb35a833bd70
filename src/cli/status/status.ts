/**
 * `lifepod status`: prints versions, memory use, and what is not well.
 *
 * Reads the API and, if the engine runs on this machine, its data folder and its processes. `lifepod status` reports on an engine of this
 * machine. `kubectl lifepod status`, KUBECONFIG, --kubeconfig and --context select a server instead. The exit code is 0 if there is no
 * trouble, 2 if there is trouble, and 1 if the command cannot find out.
 */
import type { Pod } from '../../api/generated/types.ts';
import { isSilence } from '../../client/silence.ts';
import { readEngineRecord } from '../../engine/settings.ts';
import { isApiError } from '../../machinery/status.ts';
import { dataDirOwner, UserError } from '../../platform/files.ts';
import { machineClock } from '../../platform/node-js.ts';
import { hintsFor } from '../hints.ts';
import { statusWord } from '../pod-containers.ts';
import { printLine } from '../progress/standard-output.ts';
import { apiHangs, changingNow } from '../service/not-running.ts';
import { resolveTarget, type TargetOptions } from '../target.ts';
import { selectEngine } from './engine-folder.ts';
import { readEngine, stoppedText } from './read-engine.ts';
import { readNodes, readVersion } from './read-nodes.ts';
import { readPods, type UnwellPod } from './read-pods.ts';
import { readServices } from './read-services.ts';
import { readWorkloads } from './read-workloads.ts';
import { reportJson, reportLines, type StatusReport, type Trouble } from './report.ts';

export interface StatusOptions extends TargetOptions {
  output?: 'json';
}

const UNHEALTHY_EXIT_CODE = 2;

export async function status({ output, ...options }: StatusOptions): Promise<void> {
  const { report, listAll } = await readReport(options);
  const text =
    output === 'json'
      ? JSON.stringify(reportJson(report), undefined, 2)
      : reportLines(report, listAll, machineClock.now()).join('\n');
  printLine(text);
  if (report.troubles.length > 0) process.exitCode = UNHEALTHY_EXIT_CODE;
}

async function readReport(options: TargetOptions): Promise<{ report: StatusReport; listAll: string }> {
  const now = machineClock.now();
  const selected = selectEngine(options, process.env);
  const local = selected.dataDir === undefined ? undefined : await readEngine(selected.dataDir, now);
  const target = await resolveTarget({ ...options, ...(local && { kubeconfig: local.kubeconfig }) });
  // The commands in hints have the options that were given, not the kubeconfig in the data folder.
  const hints =
    local === undefined
      ? target.hints
      : hintsFor({ ...options, engineFolder: selected.dataDir }, process.env, [local.kubeconfig]);
  const given = options.namespace === undefined ? '' : ` -n ${options.namespace}`;
  try {
    const { client, namespace } = target;
    const nodes = await readNodes(client, local?.start);
    // If the server does not answer, only the errors of other requests say what to do, so the version is read after the Nodes.
    const version = await readVersion(client);
    const pods = await readPods({
      client,
      namespace: options.namespace,
      ownNamespace: namespace,
      nodes: nodes.unread.length === 0 ? nodes.items : undefined,
      engine: local?.start,
      hints,
      clock: machineClock,
    });
    const unwell = pods.unwell.map(({ pod }) => pod);
    const workloads = await readWorkloads(client, pods.namespace, hints, unwell);
    const services = await readServices(client, pods.namespace, hints, machineClock.now());
    const engineTroubles = local === undefined ? [] : await local.troubles(nodes.items);
    // If `lifepod down` has ended the engine meanwhile, the report would call its DNS missing.
    if (local !== undefined) requireRunning(local.engine.dataDir, local.engine.pid);
    const report: StatusReport = {
      ...(local === undefined ? {} : { engine: local.engine }),
      server: target.server,
      kubernetesVersion: version,
      nodes: nodes.shown,
      podsByStatus: countByStatus(pods.pods),
      troubles: [
        ...engineTroubles,
        ...nodes.troubles,
        ...workloads.troubles,
        ...services.troubles,
        ...pods.unwell.map((each) => podEntry(each, (words) => hints.lifepod(words))),
      ],
      unread: [...selected.unread, ...nodes.unread, ...pods.unread, ...workloads.unread, ...services.unread],
    };
    return { report, listAll: hints.lifepod(`status${given} -o json`) };
  } catch (error) {
    if (local === undefined || !isApiError(error, 'ServiceUnavailable')) throw error;
    const { pid, dataDir } = local.engine;
    requireRunning(dataDir, pid);
    throw new UserError(changingNow(dataDir, !isSilence(error)) ?? apiHangs(dataDir, pid, target.server));
  }
}

/** Throws a UserError if the engine has ended since readEngine() returned. */
function requireRunning(dataDir: string, pid: number): void {
  if (dataDirOwner(dataDir) !== pid) throw new UserError(stoppedText(dataDir, readEngineRecord(dataDir)));
}

function podEntry({ pod, reason, since, sentence }: UnwellPod, command: (words: string) => string): Trouble {
  const { name, namespace, uid } = pod.metadata;
  return {
    kind: 'Pod',
    namespace,
    name,
    uid,
    reason,
    since,
    message: sentence,
    command: command(`why ${name} -n ${namespace}`),
  };
}

function countByStatus(pods: readonly Pod[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const pod of pods) {
    const word = statusWord(pod);
    counts.set(word, (counts.get(word) ?? 0) + 1);
  }
  return counts;
}
