/** `lifepod timeline`: draws the life of an existing or a deleted Pod. With -w, the drawing is kept up to date. */
import { isFinalPhase } from '../../api/core/v1/pod/status/final-phase.ts';
import type { Node, Pod, PodRecord } from '../../api/generated/types.ts';
import { POD_RECORDS } from '../../api/lifepod.io/v1/pod-record/index.ts';
import { lastLife } from '../../api/lifepod.io/v1/pod-record/lives.ts';
import { NODES } from '../../api/resources.ts';
import { createInformer } from '../../client/informer.ts';
import type { Transition } from '../../lifecycle/types.ts';
import { parseTime } from '../../machinery/time.ts';
import { toApi } from '../../node/record/step-conversion.ts';
import { UserError } from '../../platform/files.ts';
import { printableText } from '../../platform/log/printable.ts';
import { createLog, systemTimers } from '../../platform/node-js.ts';
import type { Hints } from '../hints.ts';
import { podContainers } from '../pod-containers.ts';
import { printLine } from '../progress/standard-output.ts';
import { findLife, livesOf, type PodLife, titleOf, transitionsOf } from '../records.ts';
import { mayNotReadRecords } from '../refusals.ts';
import { engineStartOf, unreportedNode } from '../service/engine-start.ts';
import { SIGNAL_CODES } from '../signals.ts';
import { resolveTarget, type Target, type TargetOptions } from '../target.ts';
import { asOf, unreportedText } from '../why/node-troubles.ts';
import { clock } from '../why/subject.ts';
import { requirePod } from '../workloads/not-a-pod.ts';
import { drawLife, stepLines } from './draw.ts';
import { inOrder, type Named } from './life.ts';
import { livesTable, summaryOf } from './lives.ts';
import { noSteps } from './no-steps.ts';

export interface TimelineOptions extends TargetOptions {
  watch?: boolean;
  output?: 'json' | 'wide';
  steps?: boolean;
  list?: boolean;
}

/** With -w, the timeline is also drawn again after this time. */
const TICK_MILLIS = 1000;
const HOME_AND_CLEAR = '\u001b[H\u001b[2J\u001b[3J';

export async function timeline(given: string, options: TimelineOptions): Promise<void> {
  const { output } = options;
  if (options.list === true && (options.watch === true || options.steps === true || output === 'wide'))
    throw new UserError('--list prints a table of all lives: omit --watch, --steps and -o wide');
  const target = await resolveTarget(options);
  await requirePod(target, given);
  const life = await findLife(target.client, target.namespace, given, target.hints);
  if (life.isUnread === true) throw mayNotReadRecords(life.namespace, `Pod ${life.name} exists`);
  if (options.list === true) {
    const lives = (await livesOf(target.client, life)).map(summaryOf);
    return printLine(output === 'json' ? JSON.stringify(lives, undefined, 2) : livesTable(lives).join('\n'));
  }
  if (options.watch === true) return watch(life, target, options);
  const steps = transitionsOf(life.records);
  if (output === 'json') return printLine(jsonOf(life, steps));
  const note = await unreportedNote(target, life, steps);
  process.stdout.write(`${[drawing(life, steps, target.hints, options), ...note.map(printableText)].join('\n')}\n`);
}

/** Resolves with a line for a Pod whose steps are those of a former engine, because its node has not reported since; else with none. */
async function unreportedNote(
  { client, engineFolder }: Target,
  { pod }: PodLife,
  steps: readonly Transition[],
): Promise<string[]> {
  const { nodeName } = pod?.spec ?? {};
  if (!nodeName || engineFolder === undefined || isFinalPhase(pod?.status?.phase)) return [];
  const node = await client
    .resource<Node>(NODES)
    .get(nodeName)
    .catch(() => undefined);
  const now = Date.now();
  const engine = engineStartOf(engineFolder, now);
  const unreported = node && engine && unreportedNode(node, engine);
  return unreported === undefined
    ? []
    : [`as of ${clock(asOf(unreported, steps))}: ${unreportedText(nodeName, unreported, now)}`];
}

const jsonOf = ({ name, namespace, uid }: PodLife, steps: readonly Transition[]): string =>
  JSON.stringify({ pod: name, namespace, uid, transitions: inOrder(steps).map(toApi) }, undefined, 2);

/** Escapes control characters before colors are added: see printLine(). */
const withPrintableTexts = ({ reason, message, ...step }: Transition): Transition => ({
  ...step,
  ...(reason === undefined ? {} : { reason: printableText(reason) }),
  ...(message === undefined ? {} : { message: printableText(message) }),
});

function drawing(life: PodLife, steps: readonly Transition[], hints: Hints, options: TimelineOptions): string {
  const { isTTY, columns } = process.stdout;
  if (steps.length === 0) return printableText(noSteps(life, hints));
  const withSteps = options.steps === true || options.output === 'wide';
  const shown = steps.map(withPrintableTexts);
  const drawn = drawLife(shown, {
    width: isTTY ? columns : 80,
    color: isTTY && !process.env['NO_COLOR'],
    now: Date.now(),
    spec: life.pod === undefined ? [] : containersOf(life.pod),
    // With -w, the Pod is not read again, so this deadline may have changed since the start of the command.
    reservedFrom: options.watch === true ? undefined : parseTime(life.pod?.status?.termination?.preExitDeadline),
  });
  return [titleOf(life), ...drawn, ...(withSteps ? ['', ...stepLines(shown)] : [])].join('\n');
}

function containersOf(pod: Pod): Named[] {
  const givenUp = new Set(pod.status?.termination?.skip);
  return podContainers(pod).map(({ name, kind }) => ({ name, kind, isGivenUp: givenUp.has(name) }));
}

/**
 * Redraws the timeline on a terminal after each new step and every second; otherwise prints a line for each new step. Resolves when the
 * record contains the step Gone, when the command is interrupted or its output is closed, and after the first output if the Pod did not
 * exist at the start.
 */
async function watch(life: PodLife, { client, hints }: Target, options: TimelineOptions): Promise<void> {
  const stopping = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const) {
    process.once(name, () => {
      process.exitCode = SIGNAL_CODES[name];
      stopping.abort();
    });
  }
  // An error usually means that the program that reads the output has closed the pipe.
  process.stdout.on('error', () => stopping.abort());
  const timers = systemTimers();
  const { signal } = stopping;
  const draws = process.stdout.isTTY && options.output !== 'json';
  const parts = new Map<string, PodRecord>();
  const printed = new Set<string>();

  const show = (): void => {
    if (signal.aborted) return;
    const steps = transitionsOf(lastLife([...parts.values()]));
    if (draws) process.stdout.write(`${HOME_AND_CLEAR}${drawing(life, steps, hints, options)}\n`);
    else printNew(steps);
    if (steps.some(({ type }) => type === 'Gone')) stopping.abort();
  };
  const printNew = (steps: readonly Transition[]): void => {
    const from = inOrder(steps)[0]?.at ?? 0;
    for (const step of inOrder(steps.filter(({ key }) => !printed.has(key)))) {
      printed.add(step.key);
      printLine(options.output === 'json' ? JSON.stringify(toApi(step)) : stepText(step, from));
    }
  };
  const put = (record: PodRecord): void => {
    parts.set(record.metadata.name, record);
    if (synced) show();
  };
  let synced = false;
  const informer = createInformer<PodRecord>(
    client.resource<PodRecord>(POD_RECORDS),
    {
      namespace: life.namespace,
      fieldSelector: `podUID=${life.uid}`,
      log: createLog({ level: 'error' }),
      timers,
      signal,
    },
    { added: put, updated: put },
  );
  await informer.synced;
  synced = true;
  show();
  // The record of a Pod that no longer exists is usually complete.
  if (life.pod === undefined) stopping.abort();
  const tick = (): void => {
    if (signal.aborted) return;
    show();
    const timer = timers.at(timers.now() + TICK_MILLIS, tick);
    signal.addEventListener('abort', () => timer.cancel(), { once: true });
  };
  if (draws) tick();
  if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
}

const stepText = (step: Transition, from: number): string => stepLines([step], from)[0] ?? '';
