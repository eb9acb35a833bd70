import { type Duplex, duplexPair } from 'node:stream';
import { expect, test } from 'vitest';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import { turns } from '../server-fixture.ts';
import { join } from './join-connections.ts';

const LONG_MILLIS = 60_000;

function stoppedTimers() {
  const timers = createVirtualTimers(0);
  return { timers, pass: () => timers.run(() => false, timers.now() + LONG_MILLIS) };
}

function joined() {
  const [client, nearClient] = duplexPair();
  const [runtime, nearRuntime] = duplexPair();
  const abort = new AbortController();
  const { timers, pass } = stoppedTimers();
  const ended = join(nearClient, nearRuntime, timers, abort.signal, {
    fromClient: (chunk) => void (nearRuntime.writable && nearRuntime.write(chunk)),
    fromRuntime: (chunk) => void (nearClient.writable && nearClient.write(chunk)),
    replied: async () => undefined,
    failed: () => undefined,
  });
  // Like a network connection, a pair whose near end is destroyed also ends at the far end.
  nearClient.once('close', () => client.destroy());
  nearRuntime.once('close', () => runtime.destroy());
  return { client, runtime, nearClient, nearRuntime, ended, abort, pass };
}

async function readAll(side: Duplex): Promise<number> {
  let bytes = 0;
  for await (const piece of side) bytes += (piece as Buffer).length;
  return bytes;
}

const SIZE = 500_000;

test.each([
  ['client', 'runtime'],
  ['runtime', 'client'],
] as const)(
  'data that the %s sent before its end reaches the %s, even if the receiver reads late',
  async (from, to) => {
    const sides = joined();
    for (let sent = 0; sent < SIZE; sent += 10_000) sides[from].write(Buffer.alloc(10_000));
    sides[from].end();
    await turns(50);
    expect(await readAll(sides[to])).toBe(SIZE);
    sides[to].end();
    sides[from].resume();
    await turns(50);
    await sides.pass();
    await sides.ended;
  },
);

test('a client that keeps sending gets the last output of a runtime that has closed', async () => {
  const { client, runtime, nearClient, nearRuntime, ended, pass } = joined();
  runtime.write('last words');
  runtime.end();
  await turns(10);
  nearRuntime.destroy();
  for (let count = 0; count < 20; count++) client.write(Buffer.alloc(10_000));
  await turns(10);
  // All data of the client was read, so that closing does not reset the connection.
  expect(client.writableLength).toBe(0);
  expect(await readAll(client)).toBe(10);
  expect(nearClient.destroyed).toBe(false);
  await pass();
  await ended;
});

test.each(['client', 'runtime'] as const)(
  'when the %s has ended, the other side is cut if it does not end in time',
  async (side) => {
    const sides = joined();
    sides[side].end();
    sides.client.resume();
    await turns(50);
    await sides.pass();
    await turns(50);
    await sides.pass();
    await sides.ended;
    expect([sides.nearClient.destroyed, sides.nearRuntime.destroyed]).toEqual([true, true]);
  },
);

test('a broken connection on either side ends the other side', async () => {
  for (const side of ['nearRuntime', 'nearClient'] as const) {
    const sides = joined();
    sides.client.resume();
    sides.runtime.resume();
    sides[side].destroy(new Error('reset'));
    await turns(50);
    await sides.pass();
    await sides.ended;
  }
});

test('the connection to a runtime that never replies to a stream is cut', async () => {
  const [client, nearClient] = duplexPair();
  const [, nearRuntime] = duplexPair();
  const { timers, pass } = stoppedTimers();
  const ended = join(nearClient, nearRuntime, timers, new AbortController().signal, {
    fromClient: () => undefined,
    fromRuntime: () => undefined,
    replied: () => new Promise(() => undefined),
    failed: () => undefined,
  });
  client.destroy();
  nearClient.destroy();
  await turns(10);
  expect(nearRuntime.destroyed).toBe(false);
  await pass();
  await ended;
  expect(nearRuntime.destroyed).toBe(true);
});

test('aborting the signal of join() cuts the connections of the client and the runtime', async () => {
  const { abort, ended, pass, nearRuntime } = joined();
  abort.abort();
  await turns(10);
  expect(nearRuntime.destroyed).toBe(true);
  await pass();
  await ended;
});
