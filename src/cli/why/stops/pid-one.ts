/** Explains why the first process of a container does not end after its stop signal. Pure. */
import type { Container, Pod } from '../../../api/generated/types.ts';
import { MINIMUM_GRACE_MILLIS } from '../../../lifecycle/hooks-and-stops.ts';
import type { Transition } from '../../../lifecycle/types.ts';
import { formatDuration } from '../../../machinery/time.ts';
import { isLoss } from '../../timeline/life.ts';
import { isOfLostSandbox } from '../../timeline/sandbox-ends.ts';
import { type Action, oneLine } from '../subject.ts';

const SHELLS = new Set(['sh', 'ash', 'bash', 'dash', 'ksh', 'zsh']);
const MAX_COMMAND_CHARS = 120;

/** The exit code of a run that SIGKILL ended. A program may exit with it, too. */
export const SIGKILLED = 137;
/** A kill this long before its deadline still counts as a kill at the deadline. */
const KILL_SLACK_MILLIS = 500;

/** Returns how long after its stop signal the run was killed, such as `30s`; undefined if it was not killed at its deadline. */
export function wasKilled(stop: Transition, exit: Transition): string | undefined {
  if (
    exit.exitCode !== SIGKILLED ||
    isLoss(exit) ||
    stop.deadline === undefined ||
    exit.at < stop.deadline - KILL_SLACK_MILLIS
  )
    return undefined;
  return formatDuration(Math.round((stop.deadline - stop.at) / 1000) * 1000);
}

/** Returns the stop signal of the run that the step Exited ended; undefined if the node sent none. */
export const stopSignalOf = (exit: Transition, steps: readonly Transition[]): Transition | undefined =>
  steps.findLast(
    ({ type, container, attempt }) => type === 'StopSignal' && container === exit.container && attempt === exit.attempt,
  );

/**
 * Returns whether the container had no more than MINIMUM_GRACE_MILLIS, which the node grants even if a preStop hook or a defer container
 * has used up the time of the Pod. A program that handles its stop signal may need longer.
 */
const isHurried = ({ at, deadline = at }: Transition): boolean => deadline - at <= MINIMUM_GRACE_MILLIS;

/**
 * Returns the exits of containers that ignored the stop signal of the termination of their Pod and were killed at the deadline. Defer
 * containers are reported by their ends.
 */
export const deafExits = (steps: readonly Transition[]): Transition[] =>
  steps.filter((exit) => {
    if (exit.type !== 'Exited' || exit.containerKind === 'defer') return false;
    const stop = stopSignalOf(exit, steps);
    if (stop === undefined || stop.message !== undefined || isOfLostSandbox(stop, steps)) return false;
    return !isHurried(stop) && wasKilled(stop, exit) !== undefined;
  });

function commandOf({ spec }: Pod, container: string): string[] {
  const { initContainers = [], containers = [], deferContainers = [] } = spec ?? {};
  const all: Container[] = [...initContainers, ...containers, ...deferContainers];
  const own = all.find((each) => each.name === container);
  return [...(own?.command ?? []), ...(own?.args ?? [])];
}

const isPidOne = ({ spec }: Pod): boolean => spec?.shareProcessNamespace !== true && spec?.hostPID !== true;

const isShell = ([program = '']: readonly string[]): boolean => SHELLS.has(program.split('/').at(-1) ?? '');

/** Returns whether a script of the command sets a trap for TERM. */
const trapsTerm = (words: readonly string[]): boolean =>
  isShell(words) && /\btrap\s.*\b(SIG)?TERM\b/s.test(words.join(' '));

export const firstProcess = (pod: Pod): string => (isPidOne(pod) ? 'PID 1' : 'the main process');

const TRAP =
  'it traps TERM: a shell ignores a signal with an empty trap, and runs another trap only when the program in the foreground has ended';

export function processEvidence(pod: Pod, container: string): string[] {
  const words = commandOf(pod, container);
  const command = oneLine(words.join(' '));
  const shown = command === '' ? [] : [`its ${isPidOne(pod) ? 'PID 1' : 'main process'}: ${cut(command)}`];
  if (trapsTerm(words)) return [...shown, TRAP];
  return [
    ...shown,
    ...(isPidOne(pod) ? ['the kernel ignores SIGTERM for a PID 1 that installs no handler for it'] : []),
    ...(isPidOne(pod) && isShell(words) ? ['a shell forwards no signal to the program that it waits for'] : []),
  ];
}

const cut = (text: string): string =>
  text.length > MAX_COMMAND_CHARS ? `${text.slice(0, MAX_COMMAND_CHARS - 1)}…` : text;

export function hearSignals(pod: Pod, container: string): Action {
  const words = commandOf(pod, container);
  if (trapsTerm(words))
    return { description: "for the next Pod: make the trap end the shell, and run its program with '&' and 'wait'" };
  if (!isPidOne(pod)) return { description: 'make the program end when it gets SIGTERM' };
  return {
    description: isShell(words)
      ? 'for the next Pod: make the shell exec the program, or trap TERM'
      : 'for the next Pod: make the program handle SIGTERM, or set shareProcessNamespace: true, with which it is not PID 1',
  };
}
