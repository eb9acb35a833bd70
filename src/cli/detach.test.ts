import { EventEmitter } from 'node:events';
import { expect, test } from 'vitest';
import { testTimers } from '../client/testing.ts';
import { startReport } from './detach.ts';

function started() {
  const [timers, said, killed] = [testTimers(), [] as string[], [] as unknown[]];
  const child = Object.assign(new EventEmitter(), { kill: (signal?: unknown) => killed.push(signal) > 0 });
  const report = startReport(child as never, timers, (why) => said.push(why));
  return { timers, said, killed, child, report };
}

test('an engine that says why its node is not ready is ended after 60 s, with that as the error', async () => {
  const { timers, said, killed, child, report } = started();
  child.emit('message', { waiting: 'no network' });
  timers.advance(59_999);
  expect([said, killed]).toEqual([['no network'], []]);
  timers.advance(1);
  expect(killed).toEqual(['SIGTERM']);
  child.emit('message', { error: 'stopped by SIGTERM' });
  expect(await report).toEqual({ error: 'the node is not ready after 60 s: no network' });
});

test('an engine that is slow is waited for, and ended as soon as it says after 60 s that it waits', async () => {
  const { timers, killed, child, report } = started();
  timers.advance(120_000);
  expect(killed).toEqual([]);
  child.emit('message', { waiting: 'no network' });
  expect(killed).toEqual(['SIGTERM']);
  child.emit('exit', 1);
  expect(await report).toEqual({ error: 'the node is not ready after 60 s: no network' });
});

test('an engine that becomes ready is ready; one that ends without a word reports nothing', async () => {
  const ready = { ready: { server: 's', nodeName: 'n', startMillis: 1 } };
  const [slow, dead] = [started(), started()];
  slow.child.emit('message', { waiting: 'no network' });
  slow.child.emit('message', ready);
  expect(await slow.report).toEqual(ready);
  slow.timers.advance(60_000);
  expect(slow.killed).toEqual([]);
  dead.child.emit('exit', 1);
  expect(await dead.report).toBeUndefined();
});
