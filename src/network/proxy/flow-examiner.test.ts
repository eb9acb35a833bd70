import { expect, it, onTestFinished } from 'vitest';
import type { Log } from '../../platform/platform.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import { FlowExaminer } from './flow-examiner.ts';
import type { UdpFrontend } from './service-rules.ts';

const frontend = (address: string, ...targets: string[]): UdpFrontend => ({
  address,
  port: 53,
  family: 'IPv4',
  targets: new Set(targets),
});

interface Examination {
  targets(): Record<string, string[]>;
  succeed(): void;
  fail(): void;
}

function examinerWithScript() {
  const ended = new AbortController();
  onTestFinished(() => ended.abort());
  const examinations: Examination[] = [];
  const waiting: ((examination: Examination) => void)[] = [];
  const errors: unknown[] = [];
  const log: Log = { ...silentLog, error: (_, fields) => void errors.push(fields?.['error']) };
  const timers = createVirtualTimers();
  const examiner = new FlowExaminer({
    timers,
    log,
    signal: ended.signal,
    deleteFlows: (frontends) =>
      new Promise((succeed, reject) => {
        const targets = () =>
          Object.fromEntries([...frontends.values()].map((each) => [each.address ?? 'node', [...each.targets]]));
        const examination = { targets, succeed, fail: () => reject(new Error('fault')) };
        const next = waiting.shift();
        if (next === undefined) examinations.push(examination);
        else next(examination);
      }),
  });
  const services = new Map<string, UdpFrontend[]>();
  return {
    errors,
    timers,
    examinations,
    next: (): Promise<Examination> =>
      new Promise((resolve) => {
        const begun = examinations.shift();
        if (begun === undefined) waiting.push(resolve);
        else resolve(begun);
      }),
    write(changes: Record<string, UdpFrontend[]>): Promise<void> {
      for (const [key, frontends] of Object.entries(changes)) services.set(key, frontends);
      return examiner.written(Object.keys(changes), (key) => services.get(key) ?? []);
    },
  };
}

it('the first examination contains all frontends, also those without endpoints', async () => {
  const { write, next } = examinerWithScript();
  void write({ a: [frontend('10.96.0.1', 'A')], b: [frontend('10.96.0.2')] });
  expect((await next()).targets()).toEqual({ '10.96.0.1': ['A'], '10.96.0.2': [] });
});

it('frontends that change during an examination are part of the next one', async () => {
  const { write, next, examinations } = examinerWithScript();
  void write({ a: [frontend('10.96.0.1', 'A')] });
  const first = await next();
  void write({ b: [frontend('10.96.0.2', 'A')] });
  void write({ c: [frontend('10.96.0.3', 'A')] });
  expect(examinations).toEqual([]);
  first.succeed();
  expect((await next()).targets()).toEqual({ '10.96.0.2': ['A'], '10.96.0.3': ['A'] });
});

it('an examination knows endpoints that are added while it runs', async () => {
  const { write, next } = examinerWithScript();
  void write({ a: [frontend('10.96.0.1', 'A')] });
  const first = await next();
  void write({ a: [frontend('10.96.0.1', 'A', 'B')] });
  expect(first.targets()).toEqual({ '10.96.0.1': ['A', 'B'] });
});

it('an examination that fails is repeated after a pause, with the current targets', async () => {
  const { write, next, timers, errors, examinations } = examinerWithScript();
  const written = write({ a: [frontend('10.96.0.1', 'A')], b: [frontend('10.96.0.2', 'A')] });
  (await next()).fail();
  await written;
  void write({ a: [frontend('10.96.0.1', 'A', 'B')], b: [], c: [frontend('10.96.0.3', 'C')] });
  const began = timers.now();
  expect(await timers.run(() => examinations.length > 0, began + 1000)).toBe(true);
  expect(timers.now() - began).toBeGreaterThanOrEqual(500);
  const again = await next();
  expect(again.targets()).toEqual({ '10.96.0.1': ['A', 'B'], '10.96.0.2': [], '10.96.0.3': ['C'] });
  expect(errors).toEqual([expect.objectContaining({ message: 'fault' })]);
});

it('an address that moves to another Service in one transaction keeps the flows to the endpoints of the other', async () => {
  const { write, next } = examinerWithScript();
  void write({ a: [frontend('10.96.0.1', 'A')], b: [] });
  (await next()).succeed();
  void write({ b: [frontend('10.96.0.1', 'B')], a: [] });
  expect((await next()).targets()).toEqual({ '10.96.0.1': ['B'] });
});
