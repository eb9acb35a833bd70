/**
 * Finds the runs that the kernel killed because memory ran out, where the runtime reports no more than Error. On cgroup v2 the
 * shim watches memory.events of the container's group, and misses the kill when the group is removed before the shim has read
 * the file. The Pod's group counts the kills in the containers' groups as well, and is still there then.
 *
 * Invariants:
 *  1. A run is judged when its end is first observed, and OOMKilled is final: it is written down before it is decided on, so
 *     that the next agent says the same.
 *  2. Each kill is accounted for once, also one that the runtime reports: a later SIGKILL of another origin is an Error.
 * Runs that lifepod stops are judged as well: memory may run out while a container ends, and a kill at its deadline is not counted.
 */
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { recordedStatuses, shownId } from '../../api/core/v1/pod/status/statuses.ts';
import type { Pod } from '../../api/generated/types.ts';
import type { OomKills } from '../../platform/cgroups.ts';
import type { Log } from '../../platform/platform.ts';
import type { ContainerObservation, PodObservation } from '../../runtime/runtime.ts';

const OOM_KILLED = 'OOMKilled';
const SIGKILL_EXIT_CODE = 137;

export interface OomAccount {
  /** OomKills.groupId of the group in which kills were accounted for. */
  groupId: string;
  /** How many kills of that group are accounted for. */
  accounted: number;
  /** The IDs of the runs that were killed though the runtime reports an Error. */
  killed: readonly string[];
}

type Run = Pick<ContainerObservation, 'id' | 'state' | 'exitCode' | 'reason' | 'finishedAt'>;

const NO_KILLS: OomAccount = { groupId: '', accounted: 0, killed: [] };

const isSuspect = ({ state, exitCode, reason }: Run): boolean =>
  state === 'exited' && exitCode === SIGKILL_EXIT_CODE && reason === 'Error';
const isReported = ({ state, reason }: Run): boolean => state === 'exited' && reason === OOM_KILLED;
/** runc itself is killed in the container's group where the limit is too small to start the container. */
const isFailedStart = ({ state, reason }: Run): boolean => state === 'exited' && reason === 'StartError';
const isOfInterest = (run: Run): boolean => isSuspect(run) || isReported(run) || isFailedStart(run);

/** `ended`: the runs that have ended since the account was made, or that the runtime has reported as killed since. Pure. */
export function settleKills(
  account: OomAccount,
  ended: readonly Run[],
  { groupId, count, unit }: OomKills,
): OomAccount {
  // A new sandbox may have a new group, which counts from zero.
  const before = account.groupId === groupId && account.accounted <= count ? account.accounted : 0;
  const reported = ended.filter(isReported).length;
  const suspects = ended.filter(isSuspect).sort((a, b) => (a.finishedAt ?? 0) - (b.finishedAt ?? 0));
  // A run may have had any number of processes: all that were killed are those of the runs that have ended.
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

/** Of one Pod: gives its observations with the reason OOMKilled where the kernel says so. */
export function createOomReader({ podDirectory, kills, log }: OomReaderOptions) {
  const file = join(podDirectory, 'oom-kills.json');
  let account: OomAccount | undefined;
  /** The reason that the runtime gave for the end of each run that has been judged, by the run's ID. */
  const judged = new Map<string, string | undefined>();

  /** What an agent before has told stays as it was told. */
  const adopt = (pod: Pod, runs: readonly ContainerObservation[]): OomAccount => {
    const kept = readAccount(file, log);
    const shown = shownRuns(pod, runs);
    for (const { run } of shown) judged.set(run.id, run.reason);
    const shownKilled = shown.filter(({ run, reason }) => isSuspect(run) && reason === OOM_KILLED);
    return { ...kept, killed: [...new Set([...kept.killed, ...shownKilled.map(({ run }) => run.id)])] };
  };

  const judge = async (pod: Pod, before: OomAccount, runs: readonly ContainerObservation[]): Promise<OomAccount> => {
    const killed = new Set(before.killed);
    const news = runs.filter((run) => isOfInterest(run) && judged.get(run.id) !== run.reason && !killed.has(run.id));
    if (news.length === 0) return before;
    const counted = await kills(pod).catch((error: unknown) => {
      log.warn('cannot read how often memory ran out in a Pod', { pod: pod.metadata.name, error: String(error) });
      return undefined;
    });
    for (const { id, reason } of news) judged.set(id, reason);
    return counted === undefined ? before : settleKills(before, news, counted);
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

/** The runs of which the Pod's status shows the end, or has shown it before a later run began, with the reason that it shows. */
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
      log.warn('cannot read which containers of a Pod were killed for memory', { file, error: String(error) });
    return NO_KILLS;
  }
}

function keepAccount(file: string, account: OomAccount, log: Log): void {
  try {
    // Not flushed for a crash of the machine: that ends the containers and their groups as well.
    writeFileSync(`${file}.new`, JSON.stringify(account), { mode: 0o600 });
    renameSync(`${file}.new`, file);
  } catch (error) {
    // The folder of a Pod that is deleted may be gone.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    log.warn('cannot write which containers of a Pod were killed for memory', { file, error: String(error) });
  }
}
