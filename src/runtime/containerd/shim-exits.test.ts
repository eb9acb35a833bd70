/** Uses shims in memory. test/integration tests the same with the shims of a real containerd. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, expect, test, vi } from 'vitest';
import { silentLog } from '../../platform/silent-log.ts';
import { createVirtualTimers, type VirtualTimers } from '../../platform/virtual-timers.ts';
import { decodeMessage, encodeMessage } from '../cri/definitions.ts';
import { createShimExits, type ShimExits } from './shim-exits.ts';
import { connectTtrpc } from './ttrpc.ts';

// Test files share the loaded modules, so this file loads its own copies, and the next file loads the original modules.
vi.hoisted(() => vi.resetModules());
afterAll(() => {
  vi.doUnmock('./ttrpc.ts');
  vi.resetModules();
});
vi.mock('./ttrpc.ts', { spy: true });

interface FakeShim {
  /** The calls, as `<service> <method> <ID>`. */
  calls: string[];
  answers: Record<string, PromiseWithResolvers<Buffer>>;
  isClosed: boolean;
}

let state: string;
let timers: VirtualTimers;
let shims: Record<string, FakeShim>;
let exits: ShimExits;

beforeEach(() => {
  state = mkdtempSync(join(tmpdir(), 'lifepod-shims-'));
  timers = createVirtualTimers();
  shims = {};
  exits = createShimExits({ state, log: silentLog, timers });
  vi.mocked(connectTtrpc).mockImplementation((socket) => {
    const shim: FakeShim = { calls: [], answers: {}, isClosed: false };
    shims[socket] = shim;
    return {
      call(service, method, payload) {
        const { id } = decodeMessage<{ id: string }>('containerd.shim.TaskRequest', payload);
        shim.calls.push(`${service} ${method} ${id}`);
        const answer = Promise.withResolvers<Buffer>();
        shim.answers[method] = answer;
        return answer.promise;
      },
      close() {
        shim.isClosed = true;
        for (const answer of Object.values(shim.answers)) answer.reject(new Error('closed'));
      },
    };
  });
});
afterEach(() => rmSync(state, { recursive: true, force: true }));

/** Adds a shim to containerd's state. Its socket has the name of the container. */
function addShim(id: string, more: object = {}): void {
  const bundle = join(state, 'io.containerd.runtime.v2.task', 'k8s.io', id);
  mkdirSync(bundle, { recursive: true });
  const bootstrap = { address: `unix://${id}`, version: 3, protocol: 'ttrpc', ...more };
  writeFileSync(join(bundle, 'bootstrap.json'), JSON.stringify(bootstrap));
}
const shim = (id: string): FakeShim => shims[id] as FakeShim;
function answer(id: string, method: 'Wait' | 'State', content: object): void {
  shim(id).answers[method]?.resolve(encodeMessage(`containerd.shim.${method}Response`, content));
}
const EXITED = { exitStatus: 3, exitedAt: { seconds: 5, nanos: 0 } };
/** The shims respond that their containers run. */
async function watchRunning(...ids: string[]): Promise<number> {
  const watching = exits.watch();
  for (const id of ids) answer(id, 'State', { status: 'RUNNING' });
  return watching;
}

test('the exit of a container that ends while containerd is down is recorded', async () => {
  addShim('c1');
  expect(await watchRunning('c1')).toBe(1);
  const service = 'containerd.task.v3.Task';
  expect(shim('c1').calls).toEqual([`${service} Wait c1`, `${service} State c1`]);
  expect(exits.exitOf('c1')).toBeUndefined();
  answer('c1', 'Wait', EXITED);
  await vi.waitFor(() => expect(exits.exitOf('c1')).toEqual({ exitCode: 3, finishedAt: 5000 }));
});

test('the exit of a container that has ended before is recorded when watch() resolves', async () => {
  addShim('c1');
  const watching = exits.watch();
  answer('c1', 'State', { status: 'STOPPED', ...EXITED });
  await watching;
  expect(exits.exitOf('c1')).toEqual({ exitCode: 3, finishedAt: 5000 });
});

test('an exit without a time has the time of its report', async () => {
  addShim('c1');
  await watchRunning('c1');
  answer('c1', 'Wait', { exitStatus: 0, exitedAt: null });
  await vi.waitFor(() => expect(exits.exitOf('c1')).toEqual({ exitCode: 0, finishedAt: timers.now() }));
});

test('watch() queries each shim once, and new shims the next time', async () => {
  addShim('c1');
  await watchRunning('c1');
  addShim('c2');
  expect(await watchRunning('c2')).toBe(2);
  expect([shim('c1').calls.length, shim('c2').calls.length]).toEqual([2, 2]);
});

test('watch() ignores shims of other protocols and resolves at once without shims', async () => {
  expect(await exits.watch()).toBe(0);
  addShim('c1', { protocol: 'grpc' });
  expect(await exits.watch()).toBe(0);
  expect(shims).toEqual({});
});

test('watch() waits at most 2 seconds for a shim, whose exit may be reported later', async () => {
  addShim('c1');
  let isDone = false;
  const watching = exits.watch().then(() => {
    isDone = true;
  });
  timers.advance(1999);
  await new Promise((resolve) => setImmediate(resolve));
  expect(isDone).toBe(false);
  timers.advance(1);
  await watching;
  answer('c1', 'Wait', EXITED);
  await vi.waitFor(() => expect(exits.exitOf('c1')?.exitCode).toBe(3));
});

test('watch() resolves although the folder of the shims cannot be read', async () => {
  mkdirSync(join(state, 'io.containerd.runtime.v2.task'));
  writeFileSync(join(state, 'io.containerd.runtime.v2.task', 'k8s.io'), '');
  expect(await exits.watch()).toBe(0);
});

test('the connection to a shim that rejects the call is closed, and the shim is queried again by the next watch()', async () => {
  addShim('c1');
  const watching = exits.watch();
  const first = shim('c1');
  first.answers['State']?.reject(new Error('no such task'));
  first.answers['Wait']?.reject(new Error('no such task'));
  await watching;
  expect(first.isClosed).toBe(true);
  await watchRunning('c1');
  expect(shim('c1')).not.toBe(first);
});

test('unwatch() closes the connections, keeps the exits, and the next watch() queries the shims again', async () => {
  addShim('c1');
  addShim('c2');
  await watchRunning('c1', 'c2');
  answer('c1', 'Wait', EXITED);
  await vi.waitFor(() => expect(exits.exitOf('c1')).toBeDefined());
  const [first, second] = [shim('c1'), shim('c2')];
  exits.unwatch();
  expect([first.isClosed, second.isClosed]).toEqual([true, true]);
  expect(exits.exitOf('c1')?.exitCode).toBe(3);
  await watchRunning('c1', 'c2');
  expect([shim('c1'), shim('c2')].map(({ isClosed }) => isClosed)).toEqual([false, false]);
});

test('keepOnly() deletes the exits of all other containers', async () => {
  for (const id of ['c1', 'c2']) addShim(id);
  await watchRunning('c1', 'c2');
  for (const id of ['c1', 'c2']) answer(id, 'Wait', EXITED);
  await vi.waitFor(() => expect([exits.exitOf('c1'), exits.exitOf('c2')]).not.toContain(undefined));
  exits.keepOnly(new Set(['c2']));
  expect([exits.exitOf('c1'), exits.exitOf('c2')?.exitCode]).toEqual([undefined, 3]);
});
