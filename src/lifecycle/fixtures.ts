/** Builds inputs of decide() for the tests of this folder. Times are seconds after START. */

import { type Termination, terminationRecord } from '../api/core/v1/pod/status/termination.ts';
import type { Container, ContainerStatus, DeferContainer, Pod, PodSpec, PodStatus } from '../api/generated/types.ts';
import type { ObjectMeta } from '../machinery/meta.ts';
import { formatTime, type Millis, parseTime } from '../machinery/time.ts';
import { decide } from './decide.ts';
import { emptyMemory } from './initial-memory.ts';
import type {
  Action,
  ActionOf,
  ContainerKind,
  ContainerState,
  Decision,
  ImageState,
  Input,
  Memory,
  Observed,
  SandboxState,
} from './types.ts';
import { actionKey } from './types.ts';

export const START: Millis = parseTime('2026-01-31T00:00:00Z') ?? 0;
export const at = (seconds: number): Millis => START + Math.round(seconds * 1000);
export const stamp = (seconds: number): string => formatTime(at(seconds));
export const secondsOf = (millis: Millis): number => (millis - START) / 1000;

export const container = (name: string, more: Partial<Container> = {}): Container & DeferContainer =>
  Object.assign({ name, image: 'i', imagePullPolicy: 'IfNotPresent' }, more);
export const entry = (name: string, more: Partial<DeferContainer> = {}): DeferContainer =>
  Object.assign(container(name), more);
export const postExit = (name: string, more: Partial<DeferContainer> = {}): DeferContainer =>
  entry(name, { trigger: 'PostExit', ...more });

export const sandbox = (attempt = 0, more: Partial<SandboxState> = {}): SandboxState => ({
  id: `s${attempt}`,
  attempt,
  ready: true,
  stopped: false,
  createdAt: at(-100),
  ips: ['10.0.0.2'],
  ...more,
});

export const startOf = (
  name: string,
  kind: ContainerKind,
  more: Partial<ActionOf<'startContainer'>> = {},
): ActionOf<'startContainer'> => ({
  kind: 'startContainer',
  container: name,
  containerKind: kind,
  attempt: 0,
  sandboxId: 's0',
  image: 'i',
  imageId: 'sha',
  backoffSeconds: 0,
  ...more,
});

/** The run began 60 s before START. */
export const running = (name: string, more: Partial<ContainerState> = {}): ContainerState => ({
  id: `${name}-${more.attempt ?? 0}`,
  sandboxId: 's0',
  name,
  kind: 'app',
  attempt: 0,
  state: 'running',
  createdAt: at(-60),
  startedAt: at(-60),
  image: 'i',
  imageId: 'sha',
  backoffSeconds: 0,
  ...more,
});
export const exited = (name: string, exitCode: number, seconds: number, more: Partial<ContainerState> = {}) =>
  running(name, { state: 'exited', exitCode, finishedAt: at(seconds), ...more });

/** `deadline` (D) and `preExit` (S) are in seconds after START. */
export const ending = (deadline: number, preExit = deadline, more: Partial<Termination> = {}): Termination => ({
  reason: 'Deleted',
  startedAt: START,
  deadline: at(deadline),
  preExitDeadline: at(preExit),
  ...more,
});

const shown = { image: 'i', imageID: '', ready: false, lastState: {} };
/** The entry ended 1 s after START. */
export const endedEntry = (name: string, reason = 'Completed', exitCode = 0, message?: string): ContainerStatus => {
  const why = message === undefined ? {} : { message };
  return { name, restartCount: 0, ...shown, state: { terminated: { exitCode, reason, ...why, finishedAt: stamp(1) } } };
};
/** The next attempt is announced, but has not started. */
export const announcedEntry = (name: string, attempt = 0): ContainerStatus => {
  return { name, restartCount: attempt, ...shown, state: { waiting: { reason: 'ContainerCreating' } } };
};

export interface Given {
  spec?: Partial<PodSpec>;
  metadata?: Partial<ObjectMeta>;
  status?: PodStatus;
  /** The Pod was deleted at START with this grace period, in seconds. */
  deleted?: number;
  /** Part of the memory and, for a Pod with defer containers, of the status. */
  ending?: Termination;
  skip?: string[];
  runs?: readonly ContainerState[];
  observed?: Partial<Observed>;
  memory?: Partial<Memory>;
  input?: Partial<Pick<Input, 'removed' | 'node' | 'nodeEnd'>>;
  /** The time of the decision, in seconds after START. */
  now?: number;
}

const LISTS = [
  ['init', 'initContainers'],
  ['app', 'containers'],
  ['defer', 'deferContainers'],
  ['ephemeral', 'ephemeralContainers'],
] as const;
const scheduled = { type: 'PodScheduled', status: 'True', lastTransitionTime: stamp(-100) };

export function inputOf(given: Given): Input {
  const { deleted, runs = [], now = 0 } = given;
  const spec: PodSpec = {
    nodeName: 'node',
    restartPolicy: 'Always',
    terminationGracePeriodSeconds: 30,
    containers: [container('app')],
    ...given.spec,
  };
  const mark = deleted === undefined ? {} : { deletionGracePeriodSeconds: deleted };
  const termination = given.ending === undefined ? undefined : { ...mark, ...given.ending };
  const skip = given.skip === undefined ? {} : { skip: given.skip };
  const isShown = termination !== undefined && spec.deferContainers !== undefined;
  const recorded = isShown ? { termination: { ...terminationRecord(termination), ...skip } } : {};
  const deletion = deleted === undefined ? {} : { deletionTimestamp: stamp(deleted), ...mark };
  const pod: Pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    spec,
    metadata: { name: 'web', namespace: 'default', uid: 'u1', ...deletion, ...given.metadata },
    status: { phase: 'Running', startTime: stamp(-100), conditions: [scheduled], ...recorded, ...given.status },
  };
  const known = LISTS.flatMap(([kind, field]) =>
    (spec[field] ?? []).map(({ name, image = 'i' }) => ({ name, image, kind })),
  );
  const kindOf = (run: ContainerState) => known.find(({ name }) => name === run.name)?.kind ?? 'app';
  const images = known.map(({ name, image }): [string, ImageState] => {
    const used = runs.flatMap((run) => (run.name === name ? run.attempt - Number(run.state === 'created') : []));
    return [name, { state: 'present', attempt: Math.max(-1, ...used) + 1, image, imageId: 'sha' }];
  });
  return {
    pod,
    removed: false,
    node: { ips: ['192.0.2.1'], runtimeName: 'containerd' },
    now: at(now),
    ...given.input,
    observed: {
      sandboxes: [sandbox()],
      containers: runs.map((run) => ({ ...run, kind: kindOf(run) })),
      volumes: 'mounted',
      images: Object.fromEntries(images),
      underWay: [],
      failures: [],
      probes: {},
      hooks: {},
      outages: [],
      ...given.observed,
    },
    memory: { ...emptyMemory(), ...(termination === undefined ? {} : { termination }), ...given.memory },
  };
}

export const decided = (given: Given): Decision => decide(inputOf(given));

export const written = (input: Input, { status, memory }: Decision): Input => ({
  ...input,
  memory,
  pod: { ...input.pod, ...(status === undefined ? {} : { status }) },
  observed: { ...input.observed, outages: [] },
});

/** Some actions wait until the status is written, so this returns the third decision on the same observation. */
export function settled(given: Given): Decision {
  const input = inputOf(given);
  const second = written(input, decide(input));
  return decide(written(second, decide(second)));
}

/** Returns the keys of the actions. A time in a key is replaced by @ and the seconds after START, such as @30. */
export const asked = ({ actions }: { actions: readonly Action[] }): string[] =>
  actions.map((action) => actionKey(action).replace(/\d{13}/g, (millis) => `@${secondsOf(Number(millis))}`));

export const entryState = ({ status }: Decision, name: string) =>
  status?.deferContainerStatuses?.find((each) => each.name === name)?.state;
