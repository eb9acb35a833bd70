/**
 * Refuses another value of --container-runtime-endpoint while Pods of the data folder run in the recorded runtime. The engine would not see
 * their containers in another runtime, so it would report them as lost and start them a second time.
 */
import { UserError } from '../../platform/files.ts';
import type { Platform } from '../../platform/platform.ts';
import { rootCommand } from '../../platform/programs/typed-program.ts';
import { containerdPaths } from '../../runtime/containerd/paths.ts';
import { findShims } from '../../runtime/containerd/process-table.ts';
import { hasRunning } from '../../runtime/runtime.ts';
import { hasPodFolders, podsInSilentRuntime } from '../leftovers.ts';
import { endpointOf, isSameEndpoint, startRuntimeHint } from '../options/runtime-endpoint.ts';
import type { EngineRecord, UpOptions } from '../settings.ts';

const OMIT = 'omit --container-runtime-endpoint';

/**
 * Rejects with a UserError if the option names another runtime than the record, and Pods run or may run in the recorded one. `record`:
 * settledRecord() of the data folder, whose engine may be running. `otherwise`: what the user can do instead of ending the Pods.
 */
export async function refuseRuntimeChange(
  { dataDir, containerRuntimeEndpoint }: Pick<UpOptions, 'dataDir' | 'containerRuntimeEndpoint'>,
  record: EngineRecord | undefined,
  platform: Platform,
  otherwise = OMIT,
): Promise<void> {
  if (containerRuntimeEndpoint === undefined || record === undefined || record.state === 'down') return;
  const former = endpointOf(record.containerRuntimeEndpoint);
  if (isSameEndpoint(endpointOf(containerRuntimeEndpoint), former)) return;
  const found = await runningPods(dataDir, former, platform);
  if (found.pods !== 0) throw new UserError(refusal(dataDir, former, found, otherwise));
}

export interface RunningPods {
  pods: number | 'unknown';
  /** False if the machine's runtime does not answer. */
  answers: boolean;
}

/** `endpoint`: undefined for the private containerd, which has one shim for each sandbox, and need not run. */
async function runningPods(dataDir: string, endpoint: string | undefined, platform: Platform): Promise<RunningPods> {
  if (endpoint === undefined) return { pods: findShims(containerdPaths(dataDir)).length, answers: true };
  if (!hasPodFolders(dataDir)) return { pods: 0, answers: true };
  // Commands import this module, and seldom need gRPC.
  const { podsInRuntime } = await import('../engine-runtime.ts');
  const pods = await podsInRuntime(endpoint, dataDir, platform);
  if (pods === undefined) return { pods: await podsInSilentRuntime(dataDir), answers: false };
  return { pods: pods.filter(hasRunning).length, answers: true };
}

/** Returns the sentence about Pods in the former runtime at `endpoint`. */
export function refusal(
  dataDir: string,
  endpoint: string | undefined,
  { pods, answers }: RunningPods,
  otherwise = OMIT,
  startHint = startRuntimeHint,
): string {
  const down = `'${rootCommand('down', dataDir)}'`;
  const [some, it] = pods === 1 ? ['1 Pod', 'it'] : [pods === 'unknown' ? 'Pods' : `${pods} Pods`, 'them'];
  const run = pods === 'unknown' ? 'may run' : pods === 1 ? 'runs' : 'run';
  const runtime = endpoint === undefined ? 'the private containerd' : `the runtime at ${endpoint}`;
  if (answers)
    return `${some} of ${dataDir} ${run} in ${runtime}, and another runtime would run ${it} a second time: end ${it} first with ${down}, or ${otherwise}`;
  return (
    `${runtime} does not answer, and ${some} of ${dataDir} ${run} in it, so another runtime would run ${it} a second time: ` +
    `${startHint(endpoint ?? '')}, then end ${it} with ${down}; if it cannot be started, restart the machine, which ends ${it}`
  );
}
