/** Composes the errors about logs that the API server refuses or that do not exist, with the next step for the user. Pure. */
import { hasEnded } from '../../api/core/v1/pod/status/final-phase.ts';
import type { Pod } from '../../api/generated/types.ts';
import { END_UNKNOWN } from '../../lifecycle/view.ts';
import { type ApiError, badRequest, isApiError } from '../../machinery/status.ts';
import { UserError } from '../../platform/files.ts';
import type { Hints } from '../hints.ts';
import { type PodContainer, podContainers, runOf, waitsForItsTurn } from '../pod-containers.ts';
import { mayNotReadLogs } from '../refusals.ts';
import { FAILED_START_REASONS } from '../why/failed-start.ts';
import { USED_TO_RUN } from '../why/run-end.ts';

/**
 * Returns a UserError with the next step if the cause of `error`, with which the API server has refused a log, is known; else `error`
 * itself. Source: the kubelet's messages.
 */
export function logRefusal(error: ApiError, pod: Pod, container: PodContainer, hints: Hints): Error {
  const { name, namespace = 'default' } = pod.metadata;
  const { message } = error;
  if (isApiError(error, 'Forbidden')) return mayNotReadLogs(namespace);
  const log = (option = ''): string => hints.lifepod(`logs ${name} -n ${namespace} -c ${container.name}${option}`);
  const why = `'${hints.lifepod(`why ${name} -n ${namespace}`)}' shows`;
  const isPrevious = /^previous terminated container .* not found$/.test(message);
  if (!isPrevious && !/^container .* is (?:waiting to start|not available)/.test(message)) return error;
  if (isLost(container, isPrevious)) return lostLog(pod, container, isPrevious, hints);
  if (isPrevious && hasRun(container)) return new UserError(`${message}: '${log()}' prints the log of its latest run`);
  if (container.status?.state?.terminated !== undefined || hasEnded(pod)) return neverStarted(pod, container, hints);
  if (!isPrevious && !waitsForItsTurn(pod, container)) return new UserError(`${message}; ${why} what to do`);
  if (container.kind === 'defer' && pod.status?.termination === undefined)
    return new UserError(
      `defer container ${container.name} in pod ${name} has not run: its turn comes when the Pod terminates; '${log(' -f')}' waits for it`,
    );
  if (isPrevious)
    return new UserError(`container ${container.name} in pod ${name} has not run yet: ${why} what it waits for`);
  return new UserError(`${message}; '${log(' -f')}' waits for it, and ${why} what it waits for`);
}

/** Returns whether the container runtime has lost the run, or with `previous` the run before it. */
function isLost({ status }: PodContainer, previous: boolean): boolean {
  const { state, lastState } = status ?? {};
  const { reason, message = '' } = (previous ? lastState : state)?.terminated ?? {};
  // The node also reports this reason for a container that has never run.
  return reason === END_UNKNOWN && (USED_TO_RUN.test(message) || (!previous && runOf(status) !== undefined));
}

function lostLog({ metadata }: Pod, { name }: PodContainer, previous: boolean, hints: Hints): UserError {
  const { name: pod, namespace = 'default' } = metadata;
  return new UserError(
    `container ${name} in pod ${pod} has no log of its ${previous ? 'previous' : 'latest'} run, because the container runtime has lost the container, ` +
      `as after a restore, because a backup contains neither containers nor logs: '${hints.lifepod(`timeline ${pod} -n ${namespace}`)}' shows its life`,
  );
}

/** Returns whether there is a log: the process of the current or last run has started. */
const hasRun = ({ status }: PodContainer): boolean => {
  const { running, terminated = status?.lastState?.terminated } = status?.state ?? {};
  if (running !== undefined) return true;
  return runOf(status) !== undefined && !FAILED_START_REASONS.includes(terminated?.reason ?? '');
};

/** Returns the error for a container of a Pod without a node. The API server returns an empty log for such a Pod, as upstream does. */
export function notScheduled(pod: Pod, container: PodContainer, hints: Hints): Error {
  const { name } = pod.metadata;
  const message = `container "${container.name}" in pod "${name}" is waiting to start: the Pod is not scheduled`;
  return logRefusal(badRequest(message), pod, container, hints);
}

/**
 * Returns the error for a container whose latest run, or with `previous` the run before it, could not start; undefined if its process has
 * started. kubectl prints nothing for such a container.
 */
export function couldNotStart(
  pod: Pod,
  container: PodContainer,
  previous: boolean,
  hints: Hints,
): UserError | undefined {
  const { state, lastState } = container.status ?? {};
  const run = previous || state?.waiting !== undefined ? lastState?.terminated : state?.terminated;
  if (run === undefined || !FAILED_START_REASONS.includes(run.reason ?? '')) return undefined;
  const { name, namespace = 'default' } = pod.metadata;
  return new UserError(
    `container ${container.name} in pod ${name} has no log, because its ${previous ? 'previous' : 'latest'} run could not start: ` +
      `'${hints.lifepod(`why ${name} -n ${namespace}`)}' shows why`,
  );
}

/** Returns the error of --all-containers for a Pod without logs; with `previous`, without logs of previous runs. */
export function noLogs(pod: Pod, { previous }: { previous: boolean }, hints: Hints): UserError {
  const { name, namespace = 'default' } = pod.metadata;
  const log = (option = ''): string => hints.lifepod(`logs ${name} -n ${namespace} --all-containers${option}`);
  const why = hints.lifepod(`why ${name} -n ${namespace}`);
  if (previous && podContainers(pod).some(hasRun))
    return new UserError(`no container in pod ${name} has restarted: '${log()}' prints the latest logs`);
  if (hasEnded(pod)) return new UserError(`no container in pod ${name} has ever started: '${why}' shows why`);
  return new UserError(
    `no container in pod ${name} has started: '${log(' -f')}' waits for them, and '${why}' shows what they wait for`,
  );
}

/** Returns the error for a container that has never started, and will not start, because the container or its Pod has ended. */
export function neverStarted({ metadata }: Pod, { name }: PodContainer, hints: Hints): UserError {
  const { name: pod, namespace = 'default' } = metadata;
  return new UserError(
    `container ${name} in pod ${pod} has never started: '${hints.lifepod(`why ${pod} -n ${namespace}`)}' shows why`,
  );
}
