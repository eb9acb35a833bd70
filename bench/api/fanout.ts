/** Measures how long a write takes to reach many watches. */
import { setTimeout as pause } from 'node:timers/promises';
import { median } from '../engine.ts';
import type { BenchServer } from './bench-server.ts';
import { Connection, type Target } from './connection.ts';
import { type Measure, millis } from './measure.ts';
import { PODS, TEMPLATE } from './objects.ts';

export const WATCHERS = 500;
export const WRITE = `write until ${WATCHERS} watchers have it`;
const WRITES = 20;

let marks = 0;

/**
 * Starts a watch on each connection. The measurement writes to `target`, and waits until all watches have received the write. `what` names
 * the write.
 */
export async function fanoutOf(
  server: BenchServer,
  what: string,
  watchers: readonly Pick<Connection, 'stream' | 'close'>[],
  target: Target = server.admin,
): Promise<{ measure: Measure; close(): void }> {
  const writer = await Connection.open(target);
  let mark = '';
  let received: number[] = [];
  let all = Promise.withResolvers<void>();
  for (const watcher of watchers) {
    let seen = '';
    watcher.stream(`${PODS}?watch=1`, (data) => {
      if (mark === '' || seen === mark || !data.includes(mark)) return;
      seen = mark;
      received.push(performance.now());
      if (received.length === watchers.length) all.resolve();
    });
  }
  await pause(2000);
  const write = async (): Promise<{ half: number; last: number }> => {
    received = [];
    all = Promise.withResolvers();
    mark = `mark-${marks++}-`;
    const began = performance.now();
    const body = `{"metadata":{"annotations":{"mark":"${mark}"}}}`;
    await writer.send('PATCH', `${PODS}/${TEMPLATE}`, body, 'application/merge-patch+json');
    await all.promise;
    return { half: median(received) - began, last: Math.max(...received) - began };
  };
  for (let i = 0; i < 20; i++) await write();
  return {
    async measure() {
      const writes = [];
      const before = await server.cpuMillis();
      for (let i = 0; i < WRITES; i++) writes.push(await write());
      const cpu = (await server.cpuMillis()) - before;
      return [
        millis(`${what}, p50`, median(writes.map(({ half }) => half))),
        millis(`${what}, last`, median(writes.map(({ last }) => last))),
        millis(`the same, CPU of the server`, cpu / WRITES),
      ];
    },
    close() {
      for (const connection of [writer, ...watchers]) connection.close();
    },
  };
}
