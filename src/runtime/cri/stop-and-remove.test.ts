import { expect, test } from 'vitest';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import { type Connection, RuntimeCallError, type RuntimeErrorCode } from './connection.ts';
import { emptyFacts } from './facts.ts';
import type { Observer } from './observer.ts';
import { type EndingParts, removeContainer, removeSandbox, stopContainer, stopSandbox } from './stop-and-remove.ts';

const abort = new AbortController();
const { signal } = abort;
const failure = (code: RuntimeErrorCode, details = 'no'): RuntimeCallError => new RuntimeCallError(code, details);
const NOT_FOUND = failure('NotFound', 'gone');

/** The results of a method's calls, in order: an error, or success. Further calls have the last result. */
type Results = readonly (Error | 'ok')[];

/** `results`: by method; other calls succeed. */
function runtime(results: Readonly<Record<string, Results>> = {}, observer: Partial<Observer> = {}) {
  const calls: string[] = [];
  const requests: unknown[] = [];
  const made = new Map<string, number>();
  const unary = async (path: string, request: Record<string, unknown>, _signal: AbortSignal, millis?: number) => {
    const method = path.replace(/^.*\//, '');
    const count = made.get(method) ?? 0;
    made.set(method, count + 1);
    const { containerId, podSandboxId, container } = request;
    calls.push(`${method} ${containerId ?? podSandboxId ?? (container as { id: string }).id}`);
    requests.push([path, request, ...(millis === undefined ? [] : [millis])]);
    const result = results[method]?.[count] ?? results[method]?.at(-1);
    if (result instanceof Error) throw result;
    return {};
  };
  const timers = createVirtualTimers();
  const facts = emptyFacts();
  const parts = { connection: { unary } as unknown as Connection, facts, observer: observer as Observer, timers };
  /** Resolves with the error's message or `done`, and the call's duration in virtual time. */
  const outcome = async (call: (parts: EndingParts) => Promise<void>): Promise<[string, number]> => {
    const begun = timers.now();
    let result: [string, number] | undefined;
    const end = (text: string): void => {
      result = [text, timers.now() - begun];
    };
    void call(parts).then(
      () => end('done'),
      (error: Error) => end(error.message),
    );
    await timers.run(() => result !== undefined, begun + 60_000);
    return result ?? ['pending', 60_000];
  };
  return { calls, requests, facts, outcome, timers };
}
const listing = (containers: string[], sandboxes: string[] = []): Partial<Observer> => ({
  listContainers: async ({ id, sandboxId }) =>
    containers.filter((each) => sandboxId === 's' || id === each).map((each) => ({ id: each })) as never,
  listSandboxes: async ({ id }) => sandboxes.filter((each) => each === id).map((each) => ({ id: each })) as never,
});
const state = (name?: string): Partial<Observer> => ({
  containerStatus: async () => (name === undefined ? undefined : { state: name }) as never,
});

test('the stop of a container has its grace period, and two minutes more until the call times out', async () => {
  const { requests, outcome } = runtime();
  expect(await outcome((parts) => stopContainer(parts, 'c', 30, signal))).toEqual(['done', 0]);
  expect(requests).toEqual([['runtime.v1.RuntimeService/StopContainer', { containerId: 'c', timeout: 30 }, 150_000]]);
});

test.each([
  ['does not exist', undefined],
  ['has exited', 'CONTAINER_EXITED'],
])('the stop of a container succeeds if CRI returns NotFound and the container %s', async (_, name) => {
  const { calls, outcome } = runtime({ StopContainer: [NOT_FOUND] }, state(name));
  expect(await outcome((parts) => stopContainer(parts, 'c', 0, signal))).toEqual(['done', 0]);
  expect(calls).toEqual(['StopContainer c']);
});

test('a stop is repeated every 10 ms if CRI returns NotFound until it reports the exit', async () => {
  const states = ['CONTAINER_RUNNING', 'CONTAINER_RUNNING', 'CONTAINER_EXITED'];
  const containerStatus = async () => ({ state: states.shift() }) as never;
  const { calls, outcome } = runtime({ StopContainer: [NOT_FOUND] }, { containerStatus });
  expect(await outcome((parts) => stopContainer(parts, 'c', 0, signal))).toEqual(['done', 20]);
  expect(calls).toHaveLength(3);
});

test.each(['CONTAINER_RUNNING', 'CONTAINER_CREATED'])(
  'the stop of a container fails after 100 tries if CRI returns NotFound and the state stays %s',
  async (name) => {
    const { calls, outcome } = runtime({ StopContainer: [NOT_FOUND] }, state(name));
    const refused = 'the container runtime lists the container c, but cannot stop it: gone';
    expect(await outcome((parts) => stopContainer(parts, 'c', 0, signal))).toEqual([refused, 990]);
    expect(calls).toHaveLength(100);
  },
);

test.each([
  ['failed to kill container "c": ttrpc: closed: unknown'],
  ['failed to kill container "c": context canceled: unknown'],
  ['container is still running, to stop first'],
])('a stop or a removal is repeated every 10 ms while the exit is not recorded: %s', async (details) => {
  const results = [failure('Unknown', details), failure('Unknown', details), 'ok'] as const;
  const methods = ['StopContainer', 'RemoveContainer', 'StopPodSandbox', 'RemovePodSandbox'];
  const all = Object.fromEntries(methods.map((method) => [method, results]));
  const { calls, outcome } = runtime(all, listing([]));
  expect(await outcome((parts) => stopContainer(parts, 'c', 0, signal))).toEqual(['done', 20]);
  expect(await outcome((parts) => removeContainer(parts, 'c', signal))).toEqual(['done', 20]);
  expect(await outcome((parts) => stopSandbox(parts, 's', signal))).toEqual(['done', 20]);
  expect(await outcome((parts) => removeSandbox(parts, 's', signal))).toEqual(['done', 20]);
  expect(calls).toHaveLength(12);
});

test('a stop is tried at most 100 times', async () => {
  const { calls, outcome } = runtime({ StopContainer: [failure('Unknown', 'ttrpc: closed')] });
  expect(await outcome((parts) => stopContainer(parts, 'c', 0, signal))).toEqual([
    'rpc error: code = Unknown desc = ttrpc: closed',
    990,
  ]);
  expect(calls).toHaveLength(100);
});

test('no call is made after an abort between two tries', async () => {
  const stop = new AbortController();
  const { calls, outcome, timers } = runtime({ StopContainer: [failure('Unknown', 'ttrpc: closed')] });
  timers.at(timers.now() + 15, () => stop.abort(new Error('aborted')));
  expect(await outcome((parts) => stopContainer(parts, 'c', 0, stop.signal))).toEqual(['aborted', 15]);
  expect(calls).toHaveLength(2);
});

test.each(['context canceled: unknown reason', 'no'])(
  'an error with the text "%s" is thrown at once',
  async (details) => {
    const error = failure('Unknown', details);
    const { outcome } = runtime({ StopContainer: [error], RemoveContainer: [error], StopPodSandbox: [error] });
    expect(await outcome((parts) => stopContainer(parts, 'c', 0, signal))).toEqual([error.message, 0]);
    expect(await outcome((parts) => removeContainer(parts, 'c', signal))).toEqual([error.message, 0]);
    expect(await outcome((parts) => stopSandbox(parts, 's', signal))).toEqual([error.message, 0]);
  },
);

test('an error that no call to the runtime caused is thrown at once', async () => {
  const { outcome } = runtime({ StopContainer: [new Error('ttrpc: closed')] });
  expect(await outcome((parts) => stopContainer(parts, 'c', 0, signal))).toEqual(['ttrpc: closed', 0]);
});

test('the facts of a container or sandbox are deleted before its removal', async () => {
  const { facts, outcome } = runtime({ RemoveContainer: [failure('Unknown')], RemovePodSandbox: [failure('Unknown')] });
  facts.containers.set('c', { podUid: 'uid' });
  facts.sandboxes.set('s', { podUid: 'uid' });
  await outcome((parts) => removeContainer(parts, 'c', signal));
  await outcome((parts) => removeSandbox(parts, 's', signal));
  expect([facts.containers.size, facts.sandboxes.size]).toEqual([0, 0]);
});

test('the removal of a container that the runtime does not list succeeds', async () => {
  const { calls, outcome } = runtime({ RemoveContainer: [NOT_FOUND] }, listing(['other']));
  expect(await outcome((parts) => removeContainer(parts, 'c', signal))).toEqual(['done', 0]);
  expect(calls).toEqual(['RemoveContainer c']);
});

test.each<[string, Results]>([
  ['is restored', ['ok']],
  ['exists again', [failure('AlreadyExists')]],
])('a listed container whose record is missing is removed after the record %s', async (_, create) => {
  const { calls, requests, outcome } = runtime({ RemoveContainer: [NOT_FOUND, 'ok'], Create: create }, listing(['c']));
  expect(await outcome((parts) => removeContainer(parts, 'c', signal))).toEqual(['done', 0]);
  expect(calls).toEqual(['RemoveContainer c', 'Create c', 'RemoveContainer c']);
  expect(requests[1]).toEqual([
    'containerd.services.containers.v1.Containers/Create',
    {
      container: {
        id: 'c',
        runtime: { name: 'io.containerd.runc.v2' },
        spec: { typeUrl: 'types.containerd.io/opencontainers/runtime-spec/1/Spec', value: Buffer.from('{}') },
      },
    },
  ]);
});

const REMOVE_REFUSED = 'the container runtime lists the container c, but cannot remove it: gone';
test.each<[string, Record<string, Results>, string]>([
  ['the container is still not found', { RemoveContainer: [NOT_FOUND] }, REMOVE_REFUSED],
  [
    'the runtime is not containerd',
    { RemoveContainer: [NOT_FOUND], Create: [failure('Unimplemented')] },
    REMOVE_REFUSED,
  ],
  [
    'the record cannot be restored',
    { RemoveContainer: [NOT_FOUND], Create: [failure('Unknown', 'full')] },
    'rpc error: code = Unknown desc = full',
  ],
  [
    'the second removal fails',
    { RemoveContainer: [NOT_FOUND, failure('Internal', 'busy')] },
    'rpc error: code = Internal desc = busy',
  ],
])('the removal of a listed container fails if %s', async (_, results, message) => {
  const { outcome } = runtime(results, listing(['c']));
  expect(await outcome((parts) => removeContainer(parts, 'c', signal))).toEqual([message, 0]);
});

test.each([
  [[], 'done'],
  [['s'], 'the container runtime lists the sandbox s, but cannot stop it: gone'],
])(
  'if the stop of a sandbox fails with NotFound and the runtime lists %j, the result is: %s',
  async (listed, expected) => {
    const { requests, outcome } = runtime({ StopPodSandbox: [NOT_FOUND] }, listing([], listed));
    expect(await outcome((parts) => stopSandbox(parts, 's', signal))).toEqual([expected, 0]);
    expect(requests).toEqual([['runtime.v1.RuntimeService/StopPodSandbox', { podSandboxId: 's' }]]);
  },
);

test('the exited containers of a sandbox are removed before the sandbox, and no others', async () => {
  const { calls, facts, outcome } = runtime();
  const final = (sandboxId: string) => ({ podUid: 'uid', final: { sandboxId } as never });
  facts.containers.set('c1', final('s')).set('c2', final('s')).set('c3', final('other')).set('c4', { podUid: 'uid' });
  expect(await outcome((parts) => removeSandbox(parts, 's', signal))).toEqual(['done', 0]);
  expect(calls).toEqual(['RemoveContainer c1', 'RemoveContainer c2', 'RemovePodSandbox s']);
  expect([...facts.containers.keys()]).toEqual(['c3', 'c4']);
});

test('the removal of a sandbox that the runtime does not list succeeds', async () => {
  const { calls, outcome } = runtime({ RemovePodSandbox: [NOT_FOUND] }, listing(['c'], ['other']));
  expect(await outcome((parts) => removeSandbox(parts, 's', signal))).toEqual(['done', 0]);
  expect(calls).toEqual(['RemovePodSandbox s']);
});

test.each<[string, Results, string]>([
  ['succeeds', [NOT_FOUND, 'ok'], 'done'],
  ['fails', [NOT_FOUND], 'the container runtime lists the sandbox s, but cannot remove it: gone'],
])(
  'a listed sandbox that is not found is removed again after its containers, which %s',
  async (_, results, expected) => {
    const { calls, outcome } = runtime({ RemovePodSandbox: results }, listing(['c1', 'c2'], ['s']));
    expect(await outcome((parts) => removeSandbox(parts, 's', signal))).toEqual([expected, 0]);
    expect(calls).toEqual(['RemovePodSandbox s', 'RemoveContainer c1', 'RemoveContainer c2', 'RemovePodSandbox s']);
  },
);
