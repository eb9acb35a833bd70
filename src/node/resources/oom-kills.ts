/**
 * Detects OOM kills that the runtime reports only as Error. On cgroup v2, the runtime's shim watches memory.events of the container's
 * group, and misses the kill if the group is removed before the shim has read the file. The Pod's group exists longer and also counts the
 * kills in its containers' groups.
 *
 * Invariants:
 * - The verdict OOMKilled is final. It is persisted before a decision uses it, so that a new agent reports the same reason.
 * - Each kill is attributed only once, including kills that the runtime reports. A later run that ends by a SIGKILL of another origin keeps
 *   the reason Error.
 *
 * Runs that lifepod stops are judged as well, since memory may run out while a container stops. The kernel's count does not include the
 * SIGKILLs of stops.
 */
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { recordedStatuses, shownId } from '../../api/core/v1/pod/status/statuses.ts';
import type { Pod } from '../../api/generated/types.ts';
import type { OomKills } from '../../platform/control-groups/cgroups.ts';
import type { Log } from '../../platform/platform.ts';
import type { ContainerObservation, PodObservation } from '../../runtime/runtime.ts';

const OOM_KILLED = 'OOMKilled';
const SIGKILL_EXIT_CODE = 137;

export interface OomAccount {
  /** The OomKills.groupId of the control group that counted the kills. */
  groupId: string;
  /** The number of kills in this group that have been attributed to runs. */
  accounted: number;
  /** The IDs of OOM-killed runs that the runtime reports as Error. */
  killed: readonly string[];
}

type Run = Pick<ContainerObservation, 'id' | 'state' | 'exitCode' | 'reason' | 'finishedAt'>;

const NO_KILLS: OomAccount = { groupId: '', accounted: 0, killed: [] };

const isSuspect = ({ state, exitCode, reason }: Run): boolean =>
  state === 'exited' && exitCode === SIGKILL_EXIT_CODE && reason === 'Error';
const isReported = ({ state, reason }: Run): boolean => state === 'exited' && reason === OOM_KILLED;
/** If the memory limit is too small to start the container, the kernel kills runc, which starts the container, in the container's group. */
const isFailedStart = ({ state, reason }: Run): boolean => state === 'exited' && reason === 'StartError';
const isOfInterest = (run: Run): boolean => isSuspect(run) || isReported(run) || isFailedStart(run);

/**
 * Attributes the new kills in the group to runs and returns the updated account. `ended`: the runs of interest that have ended, or whose
 * reason the runtime has changed, since the last update. The function is pure.
 */
export function settleKills(
  account: OomAccount,
  ended: readonly Run[],
  { groupId, count, unit }: OomKills,
): OomAccount {
  // A new sandbox may have a new group, which counts from zero.
  const before = account.groupId === groupId && account.accounted <= count ? account.accounted : 0;
  const reported = ended.filter(isReported).length;
  const suspects = ended.filter(isSuspect).sort((a, b) => (a.finishedAt ?? 0) - (b.finishedAt ?? 0));
  // If the kernel counts processes, one run may cause any number of kills. If the runtime has reported no run as OOM-killed, attribute the
  // new kills to all suspects.
  const left = unit === 'group' ? count - before - reported : reported === 0 && count > before ? suspects.length : 0;
  const found = suspects.slice(0, Math.max(0, left)).map(({ id }) => id);
  const settled = reported + found.length + ended.filter(isFailedStart).length;
  if (settled === 0 || (found.length === 0 && before === count)) return account;
  return {
    groupId,
    accounted: unit === 'group' ? Math.min(count, before + settled) : count,
    killed: [...account.killed, ...found],
  };
}

export interface OomReaderOptions {
  podDirectory: string;
  kills(pod: Pod): Promise<OomKills | undefined>;
  log: Log;
}

/** Returns a function that sets the reason OOMKilled in the observations of one Pod, based on the kernel's counts. */
export function createOomReader({ podDirectory, kills, log }: OomReaderOptions) {
  const file = join(podDirectory, 'oom-kills.json');
  let account: OomAccount | undefined;
  /** The runtime's reason for the end of each judged run, by the run's ID. */
  const judged = new Map<string, string | undefined>();

  /**
   * Adopts the verdicts that previous agents persisted or reported in the Pod's status. Marks as judged the runs whose end the status has
   * shown.
   */
  const adopt = (pod: Pod, runs: readonly ContainerObservation[]): OomAccount => {
    const kept = readAccount(file, log);
    const shown = shownRuns(pod, runs);
    for (const { run } of shown) judged.set(run.id, run.reason);
    const shownKilled = shown.filter(({ run, reason }) => isSuspect(run) && reason === OOM_KILLED);
    return { ...kept, killed: [...new Set([...kept.killed, ...shownKilled.map(({ run }) => run.id)])] };
  };

  const judge = async (pod: Pod, before: OomAccount, runs: readonly ContainerObservation[]): Promise<OomAccount> => {
    const killed = new Set(before.killed);
    const fresh = runs.filter((run) => isOfInterest(run) && judged.get(run.id) !== run.reason && !killed.has(run.id));
    if (fresh.length === 0) return before;
    const counted = await kills(pod).catch((error: unknown) => {
      log.warn('cannot read the OOM kills of a Pod', { pod: pod.metadata.name, error: String(error) });
      return undefined;
    });
    for (const { id, reason } of fresh) judged.set(id, reason);
    return counted === undefined ? before : settleKills(before, fresh, counted);
  };

  return async (pod: Pod, seen: PodObservation): Promise<PodObservation> => {
    const ids = new Set(seen.containers.map(({ id }) => id));
    for (const id of judged.keys()) if (!ids.has(id)) judged.delete(id);
    account ??= adopt(pod, seen.containers);
    const next = await judge(pod, account, seen.containers);
    if (next !== account) {
      account = { ...next, killed: next.killed.filter((id) => ids.has(id)) };
      keepAccount(file, account, log);
    }
    const killed = new Set(account.killed);
    if (killed.size === 0) return seen;
    const containers = seen.containers.map((run) =>
      killed.has(run.id) && isSuspect(run) ? { ...run, reason: OOM_KILLED } : run,
    );
    return { ...seen, containers };
  };
}

/**
 * Returns the runs whose end the Pod's status shows, or showed before a later run started. `reason`: undefined if the status no longer
 * shows the end.
 */
function shownRuns(pod: Pod, runs: readonly ContainerObservation[]) {
  const statuses = new Map(recordedStatuses(pod).map((status) => [status.name, status]));
  return runs.flatMap((run) => {
    const { state, lastState, restartCount = 0 } = statuses.get(run.name) ?? {};
    const end = [state?.terminated, lastState?.terminated].find((each) => shownId(each) === run.id);
    return end === undefined && restartCount <= run.attempt ? [] : [{ run, reason: end?.reason }];
  });
}

function readAccount(file: string, log: Log): OomAccount {
  try {
    return { ...NO_KILLS, ...(JSON.parse(readFileSync(file, 'utf8')) as Partial<OomAccount>) };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
      log.warn('cannot read the OOM-killed containers of a Pod', { file, error: String(error) });
    return NO_KILLS;
  }
}

function keepAccount(file: string, account: OomAccount, log: Log): void {
  try {
    // No fsync is needed, since a crash of the machine also ends the containers and their groups.
    writeFileSync(`${file}.new`, JSON.stringify(account), { mode: 0o600 });
    renameSync(`${file}.new`, file);
  } catch (error) {
    // The folder of a deleted Pod may no longer exist.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    log.warn('cannot write the OOM-killed containers of a Pod', { file, error: String(error) });
  }
}
