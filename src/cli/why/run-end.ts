/**
 * Explains why a run of a container ended. Pure.
 *
 * Invariant: the cause of a run's end is taken only from this run. Steps of the record count only if they have the attempt of the run.
 */
import type { ContainerStateTerminated, Pod } from '../../api/generated/types.ts';
import type { Transition } from '../../lifecycle/types.ts';
import { type Millis, parseTime } from '../../machinery/time.ts';
import { failedRun, isNotFound, unstarted } from './failed-start.ts';
import { memoryLimit } from './memory-limit.ts';
import { type NodeStop, stopOf } from './stops/node-stop.ts';
import { deafExits, firstProcess, hearSignals, SIGKILLED, stopSignalOf, wasKilled } from './stops/pid-one.ts';
import {
  type Action,
  activeBound,
  called,
  inTime,
  type Living,
  lastStep,
  lastWords,
  PROBABLE_LOSS,
  type Shown,
  seeOutput,
  seeTimeline,
  withoutAttempt,
} from './subject.ts';

export interface RunEnd {
  /** A clause in the past tense, such as `the liveness probe of container app failed, no answer`. */
  cause: string;
  evidence: string[];
  actions: Action[];
}

export const codeText = ({ exitCode, reason }: ContainerStateTerminated): string =>
  `code ${exitCode}${reason ? ` (${reason})` : ''}`;

/** Returns when a container restarts, or why it does not, as a clause after a semicolon; empty if this is not known. */
export function restartText({ pod, now }: Living, at: Millis | undefined): string {
  if (at === undefined) return '';
  const never = withoutAttempt(at, activeBound(pod), now);
  return never === undefined ? `; it restarts ${inTime(at, now)}` : `; it does not restart, ${never}`;
}

/** Returns why the run ended. `previous`: whether `lifepod logs` needs --previous for its log. */
export function endOfRun(subject: Living, shown: Shown, ended: ContainerStateTerminated, previous: boolean): RunEnd {
  const { reason = '', message } = ended;
  const words = lastWords(subject, shown.name, message);
  const output = seeOutput(subject, shown.name, previous ? '--previous' : '');
  const exit = exitOf(subject, shown.name);
  const stop = stopOf(subject, shown, exit);
  if (reason === 'OOMKilled') return outOfMemory(subject.pod, shown, stop, words, output);
  if (stop !== undefined) {
    const forced = exit === undefined ? undefined : wasKilled(stop.step, exit);
    const deaf = `${firstProcess(subject.pod)} did not end after its stop signal and was killed ${forced} later`;
    const isFinal = stop.isLoss && subject.pod.spec?.restartPolicy === 'Never';
    const then = stop.isLoss ? `, so its node stopped ${called(shown)}` : '';
    return {
      cause: `${stop.cause}${then}${isFinal ? ', which restartPolicy Never does not start again' : ''}`,
      evidence: [`it was stopped: ${stop.message}`, ...(forced ? [deaf] : []), ...words],
      actions: [stop.action, ...(forced && !stop.isLoss ? [hearSignals(subject.pod, shown.name)] : []), output],
    };
  }
  if (exit !== undefined && exit.exitCode === ended.exitCode && deafExits(subject.transitions).includes(exit))
    return {
      cause: `${called(shown)} did not end after its stop signal and was killed`,
      evidence: words,
      actions: [hearSignals(subject.pod, shown.name), output],
    };
  const hurried = exit === undefined ? undefined : killAfterSignal(subject, exit);
  if (hurried !== undefined && exit?.exitCode === ended.exitCode)
    return {
      cause: `${called(shown)} was killed ${hurried} after its stop signal, because the time of the Pod was over`,
      evidence: words,
      actions: [output],
    };
  const start = failedRun(subject, shown.name, ended);
  if (start !== undefined) return { cause: `${called(shown)} ${start.cause}`, evidence: words, actions: start.actions };
  if (isEndUnknown(ended))
    return {
      cause: `${called(shown)} was lost, ${isCutByReboot(subject, ended) ? 'because the machine was restarted without a shutdown of its node' : PROBABLE_LOSS}`,
      evidence: [
        'code 255 (Unknown): its process no longer existed when the container runtime looked for it',
        ...words,
      ],
      actions: [output],
    };
  if (isNotFound(ended)) return notFound(subject, shown, ended);
  const limit = memoryLimit(subject.pod, shown.name);
  // On cgroup v1 the runtime may not report that the kernel killed the container for its memory.
  if (ended.exitCode === SIGKILLED && PLAIN_REASONS.includes(reason) && limit !== undefined)
    return {
      cause: `${called(shown)} ended with code ${SIGKILLED}, perhaps because it reached its memory limit of ${limit}`,
      evidence: [...meaningOf(subject, ended, exit), ...words],
      actions: [raiseLimit(limit), output],
    };
  return {
    cause: `${called(shown)} ended with code ${ended.exitCode}${PLAIN_REASONS.includes(reason) ? '' : ` (${reason})`}`,
    evidence: [...meaningOf(subject, ended, exit), ...words],
    actions: [...whenCompleted(subject.pod, shown, ended), output],
  };
}

function whenCompleted(
  { metadata, spec }: Pod,
  { kind, name }: Shown,
  { exitCode }: ContainerStateTerminated,
): Action[] {
  if (exitCode !== 0) return [];
  const isSidecar =
    spec?.initContainers?.some((each) => each.name === name && each.restartPolicy === 'Always') === true;
  const lasting = 'give it a command that does not end';
  if (isSidecar) return [{ description: `${lasting}, as sidecars run until their Pod ends` }];
  if (kind !== 'app' || spec?.restartPolicy !== 'Always') return [];
  // The templates of controllers that keep Pods running allow only this restartPolicy.
  const isOwned = metadata.ownerReferences?.some(({ controller, kind }) => controller && kind !== 'Node') === true;
  return [
    {
      description: isOwned
        ? `${lasting}; a Job runs a command that ends`
        : `${lasting}, or set spec.restartPolicy to OnFailure or Never for a command that ends, and recreate the Pod`,
    },
  ];
}

/** After a restart of the machine, its container runtime and its node start within this time. */
const BOOT_MILLIS = 10 * 60 * 1000;

/** Returns whether the run began before a restart of the machine, and its end was noticed around the node's report of the restart. */
function isCutByReboot({ rebootedAt }: Living, { startedAt, finishedAt }: ContainerStateTerminated): boolean {
  const [began, noticed] = [parseTime(startedAt), parseTime(finishedAt)];
  if (rebootedAt === undefined || began === undefined || noticed === undefined) return false;
  return began < rebootedAt && Math.abs(noticed - rebootedAt) < BOOT_MILLIS;
}

/** Returns whether the container runtime does not know how the run ended. Source: the exit code and the reason of containerd's CRI. */
export const isEndUnknown = ({ exitCode, reason }: ContainerStateTerminated): boolean =>
  exitCode === 255 && reason === 'Unknown';

/** Matches the message about a container that was lost while it ran. Source: the kubelet of v1.33. */
export const USED_TO_RUN = /used to be Running$/;

/** Explains the end of a container that the runtime does not have. The runtime has deleted the log with the container. */
function notFound(subject: Living, shown: Shown, ended: ContainerStateTerminated): RunEnd {
  const { exitCode, message } = ended;
  const missed = unstarted(subject, shown, ended);
  if (missed !== undefined) return { ...missed, evidence: [], actions: [...missed.actions, seeTimeline(subject)] };
  const ran = USED_TO_RUN.test(message ?? '') || lastStep(subject, ['Started'], shown.name) !== undefined;
  return {
    cause: ran
      ? `${called(shown)} was lost, because the container runtime no longer had it`
      : `its node found no run of ${called(shown)} when the Pod ended`,
    evidence: [
      `code ${exitCode} (ContainerStatusUnknown): not an exit code, the node reports it for an end that it does not know`,
      ...(ran
        ? [
            'the container runtime has no container if its data was deleted, or after a restore, because a backup contains no containers',
          ]
        : []),
    ],
    actions: [seeTimeline(subject)],
  };
}

/** Reasons that say no more than the exit code. */
export const PLAIN_REASONS = ['', 'Error', 'Completed'];

const exitOf = ({ transitions }: Living, container: string): Transition | undefined =>
  transitions.findLast((step) => step.type === 'Exited' && step.container === container);

function outOfMemory(pod: Pod, shown: Shown, stop: NodeStop | undefined, said: string[], output: Action): RunEnd {
  const words = [...(stop === undefined ? [] : [`it was stopped: ${stop.message}`]), ...said];
  const limit = memoryLimit(pod, shown.name);
  if (limit === undefined)
    return {
      cause: `${called(shown)} was killed because the machine had too little memory`,
      evidence: ['the kernel killed it (OOMKilled), and it has no memory limit', ...words],
      actions: [{ description: 'free memory of the machine, or reduce the memory use of the container' }, output],
    };
  return {
    cause: `${called(shown)} was killed because it reached its memory limit of ${limit}`,
    evidence: ['the kernel killed it (OOMKilled)', ...words],
    actions: [raiseLimit(limit), output],
  };
}

/**
 * Returns how long after the stop signal the run was killed, if the node sent the signal because the Pod was terminating; undefined
 * otherwise.
 */
function killAfterSignal({ transitions }: Living, exit: Transition): string | undefined {
  const stop = stopSignalOf(exit, transitions);
  return stop === undefined || stop.message !== undefined ? undefined : wasKilled(stop, exit);
}

const raiseLimit = (limit: string): Action => ({
  description: `raise its memory limit of ${limit}, or reduce its memory use; to change the Pod, recreate it`,
});

const SIGNALS: Readonly<Record<number, string>> = {
  129: 'SIGHUP',
  130: 'SIGINT',
  132: 'SIGILL',
  134: 'SIGABRT',
  135: 'SIGBUS',
  136: 'SIGFPE',
  137: 'SIGKILL',
  139: 'SIGSEGV',
  141: 'SIGPIPE',
  143: 'SIGTERM',
};

/**
 * Returns a line about what the exit code usually means. A program or a shell may exit with the same code for another reason. `exit`: the
 * step of this end, if it is recorded.
 */
function meaningOf({ transitions }: Living, { exitCode }: ContainerStateTerminated, exit?: Transition): string[] {
  if (exitCode === 126) return ['code 126: a shell found the command, but cannot execute it'];
  if (exitCode === 127) return ['code 127: a shell did not find the command'];
  if (exitCode === 255)
    return [
      'code 255: the program ended with 255 or -1, or the containerd shim of the container was killed: containerd then reports this code',
    ];
  const signal = SIGNALS[exitCode];
  if (signal === undefined) return [];
  const isKnown = exit !== undefined && exit.exitCode === exitCode;
  const isForeign = exitCode === SIGKILLED && isKnown && stopSignalOf(exit, transitions) === undefined;
  return [`code ${exitCode} usually means that ${signal} ended it${isForeign ? '; the node sent no signal' : ''}`];
}
