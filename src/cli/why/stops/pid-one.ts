/** Explains why the first process of a container has not ended after its stop signal. Pure. */
import { basename } from 'node:path';
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
 * Returns the exits of containers that did not end after the stop signal of the termination of their Pod and were killed at the deadline.
 * Defer containers are reported by their ends.
 */
export const deafExits = (steps: readonly Transition[]): Transition[] =>
  steps.filter((exit) => {
    if (exit.type !== 'Exited' || exit.containerKind === 'defer') return false;
    const stop = stopSignalOf(exit, steps);
    if (stop === undefined || stop.message !== undefined || isOfLostSandbox(stop, steps)) return false;
    return !isHurried(stop) && wasKilled(stop, exit) !== undefined;
  });

function ownOf({ spec }: Pod, container: string): Container | undefined {
  const { initContainers = [], containers = [], deferContainers = [] } = spec ?? {};
  const all: Container[] = [...initContainers, ...containers, ...deferContainers];
  return all.find((each) => each.name === container);
}

function commandOf(pod: Pod, container: string): string[] {
  const { command = [], args = [] } = ownOf(pod, container) ?? {};
  return [...command, ...args];
}

const isPidOne = ({ spec }: Pod): boolean => spec?.shareProcessNamespace !== true && spec?.hostPID !== true;

const isShell = ([program = '']: readonly string[]): boolean => SHELLS.has(basename(program));

const WORD = String.raw`(?:'[^']*'|"(?:\\.|[^"\\])*"|[^\s;&|'"])+`;
/** Matches a command such as `trap 'kill $PID; exit' INT TERM`: its action, with the quotes, and its signals. */
const TRAP = new RegExp(String.raw`\btrap[^\S\n]+(?:--[^\S\n]+)?(${WORD})((?:[^\S\n]+\w+)+)`, 'g');
const EMPTY = /^(''|"")$/;

/** Returns the action, with its quotes, of the last trap that the shell sets for TERM; undefined if it sets none, or resets the trap. */
function trapOf(words: readonly string[]): string | undefined {
  if (!isShell(words)) return undefined;
  const traps = [...words.join(' ').matchAll(TRAP)];
  const action = traps.findLast(([, , signals = '']) => /\b(?:SIGTERM|TERM|15)\b/i.test(signals))?.[1];
  return action === '-' ? undefined : action;
}

/**
 * Programs that do not handle SIGTERM, and the last words of scripts with which the shell itself stays PID 1: a shell may replace itself
 * by the program that is its last command.
 */
const DEAF = new Set(['sleep', 'tail', 'cat', 'done', 'fi', 'esac', 'wait', 'exit', 'true', ':']);

const EXECUTES = /(?:^|[;&|\n]\s*|\b(?:then|do|else)\s+)exec\s+(\S+)/;

/**
 * Returns the program that the shell executes, or the first word of the last command of its script. Returns an empty text if the shell has
 * no script, or one with a comment.
 */
function lastProgram(words: readonly string[]): string {
  const option = words.findIndex((word) => /^-\w*c$/.test(word));
  const script = option === -1 ? '' : (words[option + 1] ?? '');
  if (script.includes('#')) return '';
  const last = script.split(/[;&|\n]/).findLast((command) => command.trim() !== '') ?? '';
  return EXECUTES.exec(script)?.[1] ?? last.trim().split(/\s/)[0] ?? '';
}

/** Returns whether the process certainly ignores SIGTERM. Other processes may handle it and need time. */
export function isDeaf(pod: Pod, container: string): boolean {
  const words = commandOf(pod, container);
  const trap = trapOf(words);
  // A program that the shell executes may install a handler of its own.
  if (trap !== undefined) return EMPTY.test(trap) && !EXECUTES.test(words.at(-1) ?? '');
  // Without `command`, the image determines the program.
  if (!isPidOne(pod) || ownOf(pod, container)?.command === undefined) return false;
  return DEAF.has(basename(isShell(words) ? lastProgram(words) : (words[0] ?? '')));
}

/** Returns what the shell lacks, as verb phrases, so that its trap ends it as soon as it gets SIGTERM. */
function trapNeeds(trap: string, words: readonly string[]): string[] {
  const script = words.join(' ');
  // The action may call a function of the script.
  const ends = /\b(?:exit|exec|kill)\b|=/.test(/^\w+$/.test(trap) ? script : trap);
  return [
    ...(ends ? [] : ['make the trap end the shell']),
    ...(/\bwait\b/.test(script) ? [] : ["run its program with '&' and 'wait'"]),
  ];
}

/** Returns whether the process is a shell whose trap ends it, so that it only needs time. */
export function needsTime(pod: Pod, container: string): boolean {
  const words = commandOf(pod, container);
  const trap = trapOf(words);
  return trap !== undefined && trapNeeds(trap, words).length === 0;
}

export const firstProcess = (pod: Pod): string => (isPidOne(pod) ? 'PID 1' : 'the main process');

function trapEvidence(trap: string, words: readonly string[]): string {
  if (EMPTY.test(trap)) return 'it traps TERM with an empty trap: a shell then ignores the signal';
  return trapNeeds(trap, words).length === 0
    ? 'it traps TERM, and its trap may still run'
    : 'it traps TERM: a shell runs a trap only when the program in the foreground has ended, and continues after a trap that does not end it';
}

export function processEvidence(pod: Pod, container: string): string[] {
  const words = commandOf(pod, container);
  const command = oneLine(words.join(' '));
  const shown = command === '' ? [] : [`its ${isPidOne(pod) ? 'PID 1' : 'main process'}: ${cut(command)}`];
  const trap = trapOf(words);
  if (trap !== undefined) return [...shown, trapEvidence(trap, words)];
  return [
    ...shown,
    ...(isPidOne(pod) ? ['the kernel ignores SIGTERM for a PID 1 that installs no handler for it'] : []),
    ...(isPidOne(pod) && isShell(words) ? ['a shell forwards no signal to the program that it waits for'] : []),
  ];
}

const cut = (text: string): string =>
  text.length > MAX_COMMAND_CHARS ? `${text.slice(0, MAX_COMMAND_CHARS - 1)}…` : text;

const MORE_TIME = 'make its trap end sooner, or give it more time with terminationGracePeriodSeconds';

/** Returns what makes the container end after its stop signal. */
export function hearSignals(pod: Pod, container: string): Action {
  const words = commandOf(pod, container);
  const trap = trapOf(words);
  if (trap !== undefined) {
    const needs = EMPTY.test(trap) ? trapNeeds('', []) : trapNeeds(trap, words);
    return { description: `for the next Pod: ${needs.join(', and ') || MORE_TIME}` };
  }
  if (!isPidOne(pod)) return { description: 'make the program end when it gets SIGTERM' };
  return {
    description: isShell(words)
      ? 'for the next Pod: make the shell exec the program, or trap TERM'
      : 'for the next Pod: make the program handle SIGTERM, or set shareProcessNamespace: true, with which it is not PID 1',
  };
}
