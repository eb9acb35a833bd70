import { expect, test } from 'vitest';
import type { Timers } from '../../platform/platform.ts';
import type { ExecResult } from '../../runtime/runtime.ts';
import { createStartGate, limitStarts } from './exec-gate.ts';

const never = new AbortController().signal;
const ok: ExecResult = { exitCode: 0, stdout: '', stderr: '' };
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function gate(limit: number): {
  run(id: string, signal?: AbortSignal): Promise<ExecResult>;
  /** end() ends this command in the same way as a command that run() has started. */
  client(id: string, signal?: AbortSignal): Promise<void>;
  started: string[];
  end(id: string, outcome?: Error): Promise<void>;
  pass(millis: number): Promise<void>;
  pendingTimers(): number;
} {
  let now = 0;
  const timers = new Map<object, { time: number; callback: () => void }>();
  const clock: Timers = {
    now: () => now,
    at: (time, callback) => {
      const key = { cancel: () => void timers.delete(key) };
      timers.set(key, { time, callback });
      return key;
    },
  };
  const started: string[] = [];
  const running = new Map<string, (outcome?: Error) => void>();
  const execSync = (id: string): Promise<ExecResult> =>
    new Promise((resolve, reject) => {
      started.push(id);
      running.set(id, (outcome) => (outcome === undefined ? resolve(ok) : reject(outcome)));
    });
  const start = createStartGate(clock, limit);
  const limited = limitStarts({ execSync }, start);
  return {
    client: async (id, signal = never) => {
      const ended = await start('client', signal);
      started.push(id);
      running.set(id, ended);
    },
    run: (id, signal = never) => limited.execSync(id, ['x'], 0, signal),
    started,
    end: (id, outcome) => {
      running.get(id)?.(outcome);
      return settle();
    },
    pass: (millis) => {
      now += millis;
      for (const [key, { time, callback }] of timers) {
        if (time > now) continue;
        timers.delete(key);
        callback();
      }
      return settle();
    },
    pendingTimers: () => timers.size,
  };
}

test('waiting commands start in order as others end, successfully or not', async () => {
  const { run, started, end, pendingTimers } = gate(2);
  const ended = ['a', 'b', 'c', 'd'].map((id) => run(id));
  await settle();
  expect(started).toEqual(['a', 'b']);
  await end('b');
  expect(started).toEqual(['a', 'b', 'c']);
  const failed = expect(ended[0]).rejects.toThrow('no');
  await end('a', new Error('no'));
  await failed;
  expect(started).toEqual(['a', 'b', 'c', 'd']);
  await end('c');
  await end('d');
  expect(await Promise.all(ended.slice(1))).toEqual([ok, ok, ok]);
  expect(pendingTimers()).toBe(0);
});

test('a long command frees its slot after 200 ms, and only once', async () => {
  const { run, started, end, pass } = gate(1);
  for (const id of ['slow', 'b', 'c']) void run(id);
  await settle();
  await pass(199);
  expect(started).toEqual(['slow']);
  await pass(1);
  expect(started).toEqual(['slow', 'b']);
  await end('slow');
  expect(started).toEqual(['slow', 'b']);
  await end('b');
  expect(started).toEqual(['slow', 'b', 'c']);
});

test('a command that is aborted while it waits does not start', async () => {
  const { run, started, end } = gate(1);
  const giveUp = new AbortController();
  void run('a');
  const givenUp = run('b', giveUp.signal);
  void run('c');
  giveUp.abort(new Error('given up'));
  await expect(givenUp).rejects.toThrow('given up');
  await end('a');
  expect(started).toEqual(['a', 'c']);
  await expect(run('d', giveUp.signal)).rejects.toThrow('given up');
});

test('commands of probes and hooks start before those of clients', async () => {
  const { run, client, started, end, pass } = gate(1);
  void run('a');
  const clients = ['b', 'c'].map((id) => client(id));
  void run('d');
  await settle();
  await end('a');
  await end('d');
  expect(started).toEqual(['a', 'd', 'b']);
  await pass(999);
  expect(started).toEqual(['a', 'd', 'b']);
  await pass(1);
  expect(started).toEqual(['a', 'd', 'b', 'c']);
  await Promise.all(clients);
});

test('a command of a client frees its slot only once', async () => {
  const { client, started, end, pendingTimers } = gate(1);
  for (const id of ['a', 'b', 'c']) void client(id);
  await settle();
  await end('a');
  await end('a');
  expect(started).toEqual(['a', 'b']);
  await end('b');
  await end('c');
  expect(pendingTimers()).toBe(0);
});

test('at most 16 commands of clients start at the same time, whatever the limit', async () => {
  const { run, client, started, end } = gate(100);
  for (let number = 1; number <= 20; number++) void client(`client ${number}`);
  void run('probe');
  await settle();
  expect(started).toHaveLength(17);
  expect(started).toContain('probe');
  await end('client 3');
  expect(started.at(-1)).toBe('client 17');
});
