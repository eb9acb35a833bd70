/** Uses a connection in memory. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { silentLog } from '../../../platform/silent-log.ts';
import { createVirtualTimers, type VirtualTimers } from '../../../platform/virtual-timers.ts';
import { type Connection, connect, RuntimeCallError } from '../connection.ts';
import { containerFacts, emptyFacts, type Facts, sandboxFacts } from '../facts.ts';
import { ATTEMPT_LABEL, POD_UID_LABEL } from '../labels.ts';
import type { Observer } from '../observer.ts';
import { followEvents } from './follow-events.ts';

const EVENTS = 'containerd.services.events.v1';
const codec = connect('unix:///nothing');
const labels = { [ATTEMPT_LABEL]: '0', [POD_UID_LABEL]: 'uid-1' };

let timers: VirtualTimers;
let facts: Facts;
let containers: { id: string; state: string }[];
let sandboxes: { id: string; state: string }[];
let tasks: Record<string, object>;
/** In the order in which CRI reports them; the last one remains. */
let states: string[];
let lookups: string[];
let send: (envelope: object) => void;
let cutStream: (error: Error) => void;
let streams: number;
let reported: string[];
let cuts: number;
let end: AbortController;

const connection = {
  ...codec,
  unary: async (_: string, { containerId }: { containerId: string }) => {
    const process = tasks[containerId];
    if (process === undefined) throw new RuntimeCallError('NotFound', 'no task');
    if (process instanceof Error) throw process;
    return { process };
  },
  unaryWhenReachable: async (method: string, request: { topic: string; event: object }) => {
    if (method.endsWith('/Publish')) send({ ...request, timestamp: null, namespace: 'k8s.io' });
    return {};
  },
  stream: (_: string, __: object, onMessage: (envelope: object) => void, signal: AbortSignal) =>
    new Promise((_resolve, reject) => {
      streams++;
      send = onMessage;
      cutStream = reject;
      signal.addEventListener('abort', () => reject(signal.reason));
    }),
} as unknown as Connection;

const observer = {
  listContainers: async ({ id }: { id?: string }) => {
    if (id !== undefined) lookups.push(id);
    return containers.filter((each) => id === undefined || each.id === id).map((each) => ({ ...each, labels }));
  },
  listSandboxes: async ({ id }: { id?: string }) =>
    sandboxes.filter((each) => id === undefined || each.id === id).map((each) => ({ ...each, labels })),
  containerStatus: async () => ({ state: states.length > 1 ? states.shift() : states[0] }),
} as unknown as Observer;

beforeEach(() => {
  timers = createVirtualTimers();
  [facts, containers, sandboxes, tasks, states] = [emptyFacts(), [], [], {}, ['CONTAINER_EXITED']];
  [lookups, reported, cuts, streams] = [[], [], 0, 0];
  end = new AbortController();
});
afterEach(() => end.abort());

/** Resolves after the first resync. */
async function follow(): Promise<void> {
  const source = { connection, facts, observer, scope: {}, log: silentLog, timers, runtimeName: 'containerd' };
  void followEvents(
    source,
    (event) => reported.push(event.type === 'changed' ? event.podUid : event.type),
    () => {
      cuts++;
    },
    end.signal,
  );
  await vi.waitFor(() => expect(reported).toEqual(['resync']));
  reported.length = 0;
}

function sendEvent(topic: string, message: string, content: object, timestamp: object | null = null): void {
  const value = codec.encode(`${EVENTS}.${message}`, content);
  send({ namespace: 'k8s.io', topic, timestamp, event: { typeUrl: '', value } });
}
const sendExit = (content: object): void =>
  sendEvent('/tasks/exit', 'TaskExit', { containerId: 'c1', id: 'c1', exitStatus: 3, ...content });
/** Resolves with the reports of all earlier events: all reports that precede the report of another container. */
async function settled(): Promise<string[]> {
  containerFacts(facts, 'last', 'last');
  sendEvent('/tasks/start', 'TaskStart', { containerId: 'last' });
  await vi.waitFor(() => expect(reported).toContain('last'));
  return reported.filter((uid) => uid !== 'last');
}

test('a start is recorded with the time of the event and reported', async () => {
  await follow();
  const known = containerFacts(facts, 'c1', 'uid-1');
  sendEvent('/tasks/start', 'TaskStart', { containerId: 'c1' }, { seconds: 2, nanos: 0 });
  expect(await settled()).toEqual(['uid-1']);
  expect(known.startEventAt).toBe(2000);
  sendEvent('/tasks/start', 'TaskStart', { containerId: 'c1' }, { seconds: 3, nanos: 0 });
  expect(known.startEventAt).toBe(2000);
});

test('a start that this runtime has requested is recorded and not reported', async () => {
  await follow();
  const known = containerFacts(facts, 'c1', 'uid-1');
  facts.starting.add('c1');
  sendEvent('/tasks/start', 'TaskStart', { containerId: 'c1' }, { seconds: 2, nanos: 0 });
  expect(await settled()).toEqual([]);
  expect(known.startEventAt).toBe(2000);
});

test('a start of an unknown container is ignored', async () => {
  await follow();
  sendEvent('/tasks/start', 'TaskStart', { containerId: 'foreign' });
  expect(await settled()).toEqual([]);
  expect(facts.containers.has('foreign')).toBe(false);
});

test('an exit is recorded with its code and time before it is reported', async () => {
  await follow();
  const known = containerFacts(facts, 'c1', 'uid-1');
  sendExit({ exitedAt: { seconds: 4, nanos: 500_000_000 } });
  expect(await settled()).toEqual(['uid-1']);
  expect(known.exit).toEqual({ exitCode: 3, finishedAt: 4500 });
});

test('an exit without a time gets the time at which its event arrived', async () => {
  await follow();
  const known = containerFacts(facts, 'c1', 'uid-1');
  sendExit({ exitedAt: null });
  await settled();
  expect(known.exit).toEqual({ exitCode: 3, finishedAt: timers.now() });
});

test('an exit of a process that a command started in a container is ignored', async () => {
  await follow();
  const known = containerFacts(facts, 'c1', 'uid-1');
  sendExit({ id: 'command' });
  expect(await settled()).toEqual([]);
  expect(known.exit).toBeUndefined();
});

test('an exit of a container that is not in the facts is looked up once', async () => {
  await follow();
  containers = [{ id: 'c1', state: 'CONTAINER_RUNNING' }];
  sendExit({});
  await vi.waitFor(() => expect(reported).toEqual(['uid-1']));
  expect(facts.containers.get('c1')).toMatchObject({ podUid: 'uid-1', exit: { exitCode: 3 } });
  sendExit({});
  expect(await settled()).toEqual(['uid-1', 'uid-1']);
  expect(lookups).toEqual(['c1']);
});

test('an exit of a sandbox is recorded and reported, whether or not the sandbox is in the facts', async () => {
  await follow();
  sandboxes = [{ id: 's1', state: 'SANDBOX_READY' }];
  sendExit({ containerId: 's1', id: 's1' });
  await vi.waitFor(() => expect(reported).toEqual(['uid-1']));
  expect(facts.sandboxes.get('s1')).toEqual({ podUid: 'uid-1', exited: true });
  sandboxFacts(facts, 's2', 'uid-2');
  sendExit({ containerId: 's2', id: 's2', exitStatus: 137 });
  expect(await settled()).toEqual(['uid-1', 'uid-2']);
  expect(facts.sandboxes.get('s2')?.exited).toBe(true);
});

test('an exit of a container of another client is ignored', async () => {
  await follow();
  sendExit({ containerId: 'foreign', id: 'foreign' });
  expect(await settled()).toEqual([]);
  expect([facts.containers.has('foreign'), facts.sandboxes.has('foreign')]).toEqual([false, false]);
});

test('a report that memory ran out also corrects an exit that was observed before', async () => {
  await follow();
  const known = containerFacts(facts, 'c1', 'uid-1');
  known.final = { id: 'c1' } as NonNullable<typeof known.final>;
  sendEvent('/tasks/oom', 'TaskOOM', { containerId: 'c1' });
  expect(await settled()).toEqual(['uid-1']);
  expect([known.outOfMemory, known.final]).toEqual([true, undefined]);
});

test('a report that memory ran out in a sandbox is ignored', async () => {
  await follow();
  sandboxFacts(facts, 's1', 'uid-1');
  sendEvent('/tasks/oom', 'TaskOOM', { containerId: 's1' });
  expect(await settled()).toEqual([]);
});

test('the removal of a container or sandbox deletes its facts, ends its log and is reported', async () => {
  await follow();
  const known = containerFacts(facts, 'c1', 'uid-1');
  known.logEnd = Promise.withResolvers();
  sandboxFacts(facts, 's1', 'uid-2');
  for (const id of ['c1', 's1', 'foreign']) sendEvent('/containers/delete', 'ContainerDelete', { id });
  expect(await settled()).toEqual(['uid-1', 'uid-2']);
  expect([facts.containers.has('c1'), facts.sandboxes.has('s1')]).toEqual([false, false]);
  await known.logEnd.promise;
});

test('the deletion of a task ends the log of its container and is not reported', async () => {
  await follow();
  const known = containerFacts(facts, 'c1', 'uid-1');
  sendEvent('/tasks/delete', 'TaskDelete', { containerId: 'c1' });
  sendEvent('/tasks/delete', 'TaskDelete', { containerId: 'foreign' });
  expect(await settled()).toEqual([]);
  await known.logEnd?.promise;
  expect(known.logEnd).toBeDefined();
});

test('an event of another topic and one without a value are ignored', async () => {
  await follow();
  sendEvent('/tasks/paused', 'TaskStart', { containerId: 'c1' });
  send({ namespace: 'k8s.io', topic: '/tasks/start', timestamp: null, event: null });
  expect(await settled()).toEqual([]);
});

test('each cut of the stream is reported, and the stream is reopened after 20 ms', async () => {
  await follow();
  cutStream(new Error('cut'));
  await vi.waitFor(() => expect(cuts).toBe(1));
  timers.advance(19);
  await Promise.resolve();
  expect(streams).toBe(1);
  timers.advance(1);
  await vi.waitFor(() => expect(reported).toEqual(['resync']));
  expect(streams).toBe(2);
});

test('after the subscription, exits that CRI has not recorded are found from the tasks', async () => {
  containers = [
    { id: 'stopped', state: 'CONTAINER_RUNNING' },
    { id: 'untimed', state: 'CONTAINER_RUNNING' },
    { id: 'running', state: 'CONTAINER_RUNNING' },
    { id: 'created', state: 'CONTAINER_CREATED' },
  ];
  sandboxes = ['stopped-box', 'gone-box', 'running-box'].map((id) => ({ id, state: 'SANDBOX_READY' }));
  sandboxes.push({ id: 'old-box', state: 'SANDBOX_NOTREADY' });
  const stopped = { status: 'STOPPED', exitStatus: 7, exitedAt: { seconds: 5, nanos: 0 } };
  const running = { status: 'RUNNING', exitStatus: 0, exitedAt: null };
  tasks = {
    stopped,
    untimed: { ...stopped, exitedAt: null },
    running,
    'stopped-box': stopped,
    'running-box': running,
    created: stopped,
  };
  await follow();
  expect([...facts.containers].map(([id, { exit }]) => [id, exit])).toEqual([
    ['stopped', { exitCode: 7, finishedAt: 5000 }],
    ['untimed', { exitCode: 7, finishedAt: timers.now() }],
  ]);
  expect([...facts.sandboxes]).toEqual([
    ['stopped-box', { podUid: 'uid-1', exited: true }],
    ['gone-box', { podUid: 'uid-1', exited: true }],
  ]);
});

test('the resync waits until CRI shows the exit of a container whose task was deleted', async () => {
  containers = [{ id: 'deleted', state: 'CONTAINER_RUNNING' }];
  states = ['CONTAINER_RUNNING', 'CONTAINER_RUNNING', 'CONTAINER_EXITED'];
  const following = follow();
  await timers.run(() => reported.length > 0, timers.now() + 1000);
  await following;
  expect([...facts.containers]).toEqual([]);
});

test('the resync waits at most 5 seconds for CRI to show an exit', async () => {
  containers = [{ id: 'deleted', state: 'CONTAINER_RUNNING' }];
  states = ['CONTAINER_RUNNING'];
  const start = timers.now();
  const following = follow();
  await timers.run(() => reported.length > 0, start + 60_000);
  await following;
  expect(timers.now() - start).toBeGreaterThan(5000);
  expect(timers.now() - start).toBeLessThanOrEqual(5020);
});

test('the stream is opened again if the tasks cannot be queried', async () => {
  containers = [{ id: 'c1', state: 'CONTAINER_RUNNING' }];
  tasks = { c1: new RuntimeCallError('Internal', 'no answer') };
  const following = follow();
  await vi.waitFor(() => expect(cuts).toBe(1));
  tasks = { c1: { status: 'RUNNING', exitStatus: 0, exitedAt: null } };
  timers.advance(20);
  await following;
  expect(streams).toBe(2);
});
