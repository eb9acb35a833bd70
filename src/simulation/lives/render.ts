/** Renders a life as text: one line per step, with its time in seconds from the start. */
import type { ContainerStatus, PodStatus } from '../../api/generated/types.ts';
import { type Action, actionKey } from '../../lifecycle/types.ts';
import { parseTime } from '../../machinery/time.ts';
import type { LifeResult } from '../life.ts';

/** One line of the text. Steps at the same time are ordered by kind. */
interface Step {
  at: number;
  kind: 'agent' | 'node' | 'probe' | 'status' | 'event' | 'do';
  text: string;
}

const ORDER: readonly Step['kind'][] = ['agent', 'node', 'probe', 'status', 'event', 'do'];

export function renderLife(result: LifeResult): string[] {
  const seconds = (at: number): string => ((at - result.start) / 1000).toFixed(3);
  const steps: Step[] = [
    ...result.absences.map(({ from, to }): Step => ({ at: from, kind: 'agent', text: `dies until ${seconds(to)}` })),
    ...result.trace.flatMap(traceStep),
    ...probeSteps(result),
    ...statusSteps(result, seconds),
    ...result.events.map(({ at, reason, fieldPath, message }): Step => {
      const where = fieldPath === undefined ? '' : ` ${fieldPath.replace(/^spec\./, '')}`;
      return { at, kind: 'event', text: `${reason}${where}: ${message}` };
    }),
    ...result.actions.flatMap(({ at, action }) => actionStep(at, action, namesOf(result), seconds)),
  ];
  const { goneAt } = result;
  if (goneAt !== undefined) steps.push({ at: goneAt, kind: 'node', text: 'nothing of the Pod is left' });
  return steps
    .map((step, index) => ({ ...step, index }))
    .sort((a, b) => a.at - b.at || ORDER.indexOf(a.kind) - ORDER.indexOf(b.kind) || a.index - b.index)
    .map(({ at, kind, text }) => `${seconds(at).padStart(8)}  ${kind.padEnd(6)}  ${text}`);
}

const namesOf = ({ trace }: LifeResult): ReadonlyMap<string, string> =>
  new Map(trace.map(({ id, name, attempt }) => [id, name === '' ? `sandbox#${attempt}` : numbered(name, attempt)]));

const numbered = (name: string, attempt: number): string => (attempt === 0 ? name : `${name}#${attempt}`);

function traceStep({ at, what, name, attempt, exitCode, cause }: LifeResult['trace'][number]): Step[] {
  const who = name === '' ? `sandbox#${attempt}` : numbered(name, attempt);
  const how = { kill: ', killed', outside: ', killed from outside', reboot: ', with the machine' };
  const text = {
    sandbox: `${who} is there`,
    start: `${who} starts`,
    signal: `${who} gets its stop signal`,
    exit: `${who} exits ${exitCode}${how[cause as keyof typeof how] ?? ''}`,
    remove: '',
  }[what];
  return text === '' ? [] : [{ at, kind: 'node', text }];
}

/** Renders the first result of each probe of a run, and each change of this result. */
function probeSteps({ probes }: LifeResult): Step[] {
  const last = new Map<string, string>();
  return probes.flatMap(({ at, container, attempt, probe, result }): Step[] => {
    const key = `${probe} of ${numbered(container, attempt)}`;
    const isSame = last.get(key) === result;
    last.set(key, result);
    return isSame ? [] : [{ at, kind: 'probe', text: `${key}: ${result}` }];
  });
}

function actionStep(
  at: number,
  action: Action,
  names: ReadonlyMap<string, string>,
  seconds: (at: number) => string,
): Step[] {
  if (action.kind === 'runProbe') return [];
  const name = 'id' in action ? (names.get(action.id) ?? action.id) : '';
  if (action.kind === 'stopContainer')
    return [{ at, kind: 'do', text: `stopContainer ${name}, kill at ${seconds(action.deadline)}` }];
  if (action.kind === 'runHook') return [{ at, kind: 'do', text: `runHook ${action.hook} of ${name}` }];
  if ('id' in action) return [{ at, kind: 'do', text: `${action.kind} ${name}` }];
  return [{ at, kind: 'do', text: actionKey(action).replaceAll('/', ' ') }];
}

/** Renders the parts of each status that differ from the previous status. */
function statusSteps({ statuses }: LifeResult, seconds: (at: number) => string): Step[] {
  let before = new Map<string, string>();
  return statuses.flatMap(({ at, status }): Step[] => {
    const now = partsOf(status, seconds);
    const changed = [...now].filter(([part, text]) => before.get(part) !== text).map(([, text]) => text);
    before = now;
    return changed.length === 0 ? [] : [{ at, kind: 'status', text: changed.join('; ') }];
  });
}

function partsOf(status: PodStatus, seconds: (at: number) => string): Map<string, string> {
  const parts = new Map([['phase', [status.phase, status.reason].filter((word) => word !== undefined).join(' ')]]);
  for (const { type, status: holds, reason } of status.conditions ?? [])
    if (['Ready', 'Deferred', 'DisruptionTarget'].includes(type))
      parts.set(type, `${type}=${holds}${reason === undefined ? '' : ` ${reason}`}`);
  const lists = [status.initContainerStatuses, status.containerStatuses, status.deferContainerStatuses];
  for (const container of [...lists, status.ephemeralContainerStatuses].flatMap((list) => list ?? []))
    parts.set(container.name, stateText(container));
  const { termination } = status;
  if (termination !== undefined) {
    const time = (text: string | undefined): string => seconds(parseTime(text) ?? Number.NaN);
    const S = termination.preExitDeadline === undefined ? '' : `, PreExit until ${time(termination.preExitDeadline)}`;
    parts.set('termination', `${termination.reason}${S}, until ${time(termination.deadline)}`);
    if (termination.turn !== undefined) parts.set('turn', `turn of ${termination.turn.entry}`);
    if (termination.skip !== undefined) parts.set('skip', `skip ${termination.skip.join(' ')}`);
  }
  return parts;
}

function stateText({ name, state, restartCount }: ContainerStatus): string {
  const { waiting, terminated } = state ?? {};
  const text =
    waiting !== undefined
      ? `waiting ${waiting.reason}`
      : terminated !== undefined
        ? `${terminated.reason} ${terminated.exitCode}${terminated.reason === 'Skipped' ? ` (${terminated.message})` : ''}`
        : 'running';
  return `${numbered(name, restartCount)} ${text}`;
}
