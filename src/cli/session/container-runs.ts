/**
 * Distinguishes a container whose process has never run from a container that runs and fails again and again. The status of a Pod shows
 * only the last end of a container, so ContainerRuns keeps facts from earlier statuses. Pure.
 */
import type { ContainerStateTerminated, ContainerStatus, Pod } from '../../api/generated/types.ts';
import type { Transition } from '../../lifecycle/types.ts';
import { type PodContainer, podContainers } from '../pod-containers.ts';
import { commandError, FAILED_START_REASONS } from '../why/failed-start.ts';
import { hookFailure, stopOf } from '../why/stops/node-stop.ts';

export interface ContainerRuns {
  ran: ReadonlySet<string>;
  /** The names of the containers that have not run since their postStart hook failed. The node kills such a container. */
  hooked: ReadonlySet<string>;
}

export const NO_RUNS: ContainerRuns = { ran: new Set(), hooked: new Set() };

const HOOK_FAILED = 'PostStartHookError';

type Failure = Pick<ContainerStateTerminated, 'reason' | 'message'>;

const lastEnd = (status: ContainerStatus | undefined): ContainerStateTerminated | undefined =>
  status?.state?.terminated ?? status?.lastState?.terminated;
const isFailedStart = ({ reason = '' }: Failure): boolean => FAILED_START_REASONS.includes(reason);

export const startedContainers = (pod: Pod): PodContainer[] =>
  podContainers(pod).filter(({ kind }) => kind !== 'defer' && kind !== 'ephemeral');

export function withRuns(before: ContainerRuns, pod: Pod): ContainerRuns {
  const [ran, hooked] = [new Set(before.ran), new Set(before.hooked)];
  for (const { name, status } of startedContainers(pod)) {
    const { running, waiting } = status?.state ?? {};
    const end = lastEnd(status);
    const isHookFailed = waiting?.reason === HOOK_FAILED;
    if (isHookFailed) hooked.add(name);
    if (running !== undefined) hooked.delete(name);
    if (running !== undefined || isHookFailed || (end !== undefined && !isFailedStart(end))) ran.add(name);
  }
  return { ran, hooked };
}

/**
 * Returns why the last attempt to start the process of the container failed; undefined if no attempt has failed or the container has run.
 */
export function failedStartOf({ name, status }: PodContainer, { ran }: ContainerRuns): string | undefined {
  // The status shows a failed start first as `waiting`, later as an end of the container.
  const failure = [status?.state?.waiting, lastEnd(status)].find((each) => each !== undefined && isFailedStart(each));
  return failure === undefined || ran.has(name) ? undefined : startErrorText(failure);
}

export interface CrashLoop {
  text: string;
  /** Several texts may have the same cause. The user needs to read only one of them. */
  cause: string;
  /** Identifies the run that has ended, within its Pod. */
  run: string;
}

/** Returns each container that has run and waits for its next run. `steps`, from the Pod's record, say why the node stopped a run. */
export function crashLoops(pod: Pod, { ran, hooked }: ContainerRuns, steps: readonly Transition[]): CrashLoop[] {
  return startedContainers(pod).flatMap((container): CrashLoop[] => {
    const { name, status } = container;
    const attempt = status?.restartCount;
    const found = (phrase: string, cause = phrase): CrashLoop[] => [
      { text: `container ${name} keeps ${phrase}`, cause: `${name} ${cause}`, run: `${name}/${attempt}` },
    ];
    const { reason, message } = status?.state?.waiting ?? {};
    if (reason === HOOK_FAILED)
      return found(`failing: its postStart hook ${oneLine(hookFailure(pod, container, message))}`);
    const end = lastEnd(status);
    // The exit code of a container that was killed because of its hook says nothing about the cause.
    if (reason !== 'CrashLoopBackOff' || end === undefined || !ran.has(name) || hooked.has(name)) return [];
    const stop = stopOf({ pod, events: [], transitions: steps }, container, { attempt });
    // The text contains the output of the probe, which may differ each time, so the message is the cause.
    if (stop !== undefined) return found(`failing: ${stop.cause}`, stop.message);
    if (isFailedStart(end)) return found(`failing: ${startErrorText(end)}`);
    return found(`${end.exitCode === 0 ? 'ending' : 'failing'}: ${exitText(end)}`);
  });
}

/** Returns the text as one line, with `ID` instead of the long IDs of containers. */
const oneLine = (text: string): string =>
  text
    .trim()
    .replace(/\s*\n\s*/g, '; ')
    .replace(/\b[0-9a-f]{64}\b/g, 'ID');

function startErrorText({ reason, message }: Failure): string {
  const known = commandError(message);
  if (known !== undefined) return `it ${known}`;
  return `its process cannot be started: ${oneLine(message ?? '').replace(/^rpc error: code = \w+ desc = /, '') || reason}`;
}

function exitText({ exitCode, reason = '' }: ContainerStateTerminated): string {
  const isUsual = ['', 'Completed', 'Error'].includes(reason);
  return isUsual ? `exit code ${exitCode}` : `${reason}, exit code ${exitCode}`;
}
