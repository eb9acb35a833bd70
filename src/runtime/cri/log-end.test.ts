import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import { containerFacts, emptyFacts, logEndOf } from './facts.ts';
import { LOG_END_MILLIS, logEnded, QUIET_MILLIS, SETTLED_MILLIS } from './log-end.ts';
import type { ContainerStatus } from './responses.ts';

const NOW = 10_000_000;
const NANOS = 1e6;

let folder: string;
let logPath: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'lifepod-log-end-'));
  logPath = join(folder, '0.log');
  writeFileSync(logPath, 'first\n');
});
afterEach(() => rmSync(folder, { recursive: true }));

/** The status of the container in CRI; undefined: CRI does not know the container; an Error: the query fails. */
type Report = Partial<ContainerStatus> | undefined | Error;

const running: Report = { state: 'CONTAINER_RUNNING', finishedAt: 0 };
const exited = (agoMillis: number): Report => ({
  state: 'CONTAINER_EXITED',
  finishedAt: (NOW - agoMillis) * NANOS,
});

function prepare(report: Report, signal = new AbortController().signal) {
  const [facts, timers] = [emptyFacts(), createVirtualTimers(NOW)];
  const known = containerFacts(facts, 'c', 'uid');
  let queries = 0;
  const containerStatus = async () => {
    queries++;
    if (report instanceof Error) throw report;
    return report && ({ logPath, ...report } as ContainerStatus);
  };
  let result: string | undefined;
  let called = false;
  return {
    facts,
    known,
    timers,
    queries: () => queries,
    /** Returns the result, or undefined while logEnded() waits. The first call of this function calls logEnded(). */
    async result() {
      if (!called)
        void logEnded({ facts, observer: { containerStatus }, timers }, 'c', signal).then(
          () => {
            result = 'ended';
          },
          (error: Error) => {
            result = error.message;
          },
        );
      called = true;
      // Wait until no query of the log's size is under way. logEnded() begins its next query before setImmediate() calls its callback.
      do await new Promise((resolve) => setImmediate(resolve));
      while (process.getActiveResourcesInfo().includes('FSReqPromise'));
      return result;
    },
  };
}

test.each<[string, Report]>([
  ['CRI reports an exit of long ago', exited(SETTLED_MILLIS + 1)],
  ['CRI does not know the container', undefined],
])('a log has ended if %s', async (_, report) => {
  expect(await prepare(report).result()).toBe('ended');
});

test('a log has ended, without a query, if its container exited long ago or is not known', async () => {
  const old = prepare(running);
  old.known.final = { finishedAt: NOW - SETTLED_MILLIS - 1 } as never;
  expect(await old.result()).toBe('ended');
  const unknown = prepare(running);
  unknown.facts.containers.clear();
  expect(await unknown.result()).toBe('ended');
  expect([old.queries(), unknown.queries()]).toEqual([0, 0]);
});

test('the log of a container that has just exited has ended once it does not grow for 20 ms', async () => {
  const { result, timers } = prepare(exited(0));
  expect(await result()).toBeUndefined();
  appendFileSync(logPath, 'second\n');
  timers.advance(QUIET_MILLIS);
  expect(await result()).toBeUndefined();
  timers.advance(QUIET_MILLIS - 1);
  expect(await result()).toBeUndefined();
  timers.advance(1);
  expect(await result()).toBe('ended');
});

test('a log whose file does not exist has ended', async () => {
  rmSync(logPath);
  expect(await prepare(exited(0)).result()).toBe('ended');
});

test('the log of a container that CRI reports as running grows until its task is deleted', async () => {
  const { known, result, timers } = prepare(running);
  expect(await result()).toBeUndefined();
  timers.advance(QUIET_MILLIS * 2);
  expect(await result()).toBeUndefined();
  logEndOf(known).resolve();
  expect(await result()).toBeUndefined();
  timers.advance(QUIET_MILLIS);
  expect(await result()).toBe('ended');
});

test('a log ends with the deletion of its task if CRI cannot be reached', async () => {
  const { known, result } = prepare(new Error('down'));
  expect(await result()).toBeUndefined();
  logEndOf(known).resolve();
  expect(await result()).toBe('ended');
});

test('the wait for the deletion of a task takes at most ten seconds', async () => {
  const { result, timers } = prepare(new Error('down'));
  expect(await result()).toBeUndefined();
  timers.advance(LOG_END_MILLIS - 1);
  expect(await result()).toBeUndefined();
  timers.advance(1);
  expect(await result()).toBe('ended');
});

test.each<[string, Report]>([
  ['deletion of its task', running],
  ['deletion of its task while CRI cannot be reached', new Error('down')],
  ['last output', exited(0)],
])('an abort ends the wait for the end of a log during the wait for the %s', async (_, report) => {
  const own = new AbortController();
  const { result } = prepare(report, own.signal);
  expect(await result()).toBeUndefined();
  own.abort(new Error('aborted'));
  expect(await result()).toBe('aborted');
});
