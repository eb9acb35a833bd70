import { Writable } from 'node:stream';
import fc from 'fast-check';
import { afterEach, expect, test, vi } from 'vitest';
import { ProtocolError } from '../protocol-error.ts';
import { createFrameParser, dataHead, type Frame, goAway, ping, rstStream, synReply, synStream } from './frames.ts';
import { createHeaderReader } from './header-block.ts';
import { createSpdyRelay, type RelayRules } from './spdy-relay.ts';
import { createStreamRoom } from './stream-limit.ts';

const COMMAND: RelayRules = { types: ['error', 'stdin', 'stdout', 'stderr', 'resize'], once: true };
const PORTS: RelayRules = { types: ['error', 'data'], once: false };

afterEach(() => void vi.restoreAllMocks());

function relay(rules = COMMAND, maxStreams?: number) {
  const side = () => {
    const written: Buffer[] = [];
    const near = new Writable({
      write(chunk, _encoding, done) {
        written.push(chunk as Buffer);
        done();
      },
    });
    return { near, frames: (): Frame[] => createFrameParser('the relay')(Buffer.concat(written.splice(0))) };
  };
  const [client, runtime] = [side(), side()];
  const { fromClient, fromRuntime, refuse, ended } = createSpdyRelay(client.near, runtime.near, rules, maxStreams);
  return { fromClient, fromRuntime, refuse, ended, toClient: client.frames, toRuntime: runtime.frames };
}

const open = (id: number, type: string, first = id === 1, fin = false): Buffer =>
  synStream(id, { streamType: type }, { first, fin });
const data = (id: number, text: string | Buffer, fin = false): Buffer =>
  Buffer.concat([dataHead(id, text.length, fin), Buffer.from(text)]);
const control = (type: number, payload: string): Buffer => {
  const bytes = Buffer.from(payload.replaceAll(' ', ''), 'hex');
  return Buffer.concat([Buffer.of(0x80, 3, 0, type, 0, 0, 0, bytes.length), bytes]);
};

test('the relay refuses streams beyond the limit of all connections together until other streams end', async () => {
  const rules = { ...PORTS, room: createStreamRoom(3) };
  const [first, second] = [relay(rules), relay(rules)];
  await first.fromClient(Buffer.concat([open(1, 'error'), open(3, 'data', false)]));
  await second.fromClient(Buffer.concat([open(1, 'error'), open(3, 'data', false)]));
  expect(second.toRuntime()).toHaveLength(1);
  expect(second.toClient()).toEqual([{ type: 'rstStream', streamId: 3, status: 3 }]);
  first.ended();
  await second.fromClient(open(5, 'data', false));
  expect(second.toRuntime()).toHaveLength(1);
});

test('the relay passes on streams, data, resets and pings', async () => {
  const { fromClient, fromRuntime, toClient, toRuntime } = relay(PORTS);
  const headers = { streamtype: 'data', port: '80', requestid: '0' };
  await fromClient(
    Buffer.concat([synStream(1, headers, { first: true }), open(3, 'error', false, true), data(1, 'in'), ping(1)]),
  );
  const [first, second, ...rest] = toRuntime();
  if (first?.type !== 'synStream' || second?.type !== 'synStream') throw new Error('no streams were opened');
  const read = createHeaderReader();
  expect(Object.fromEntries(read(first.block))).toEqual(headers);
  expect([...read(second.block)]).toEqual([['streamtype', 'error']]);
  expect([first, second]).toMatchObject([
    { streamId: 1, fin: false },
    { streamId: 3, fin: true },
  ]);
  expect(rest).toEqual([
    { type: 'data', streamId: 1, bytes: Buffer.from('in'), fin: false },
    { type: 'ping', id: 1 },
  ]);
  const replies = [synReply(1, { first: true }), synReply(3, { first: false, fin: true })];
  await fromRuntime(Buffer.concat([...replies, ping(1), data(1, 'out', true), goAway(3, 0)]));
  expect(toClient()).toEqual([
    { type: 'synReply', streamId: 1, fin: false },
    { type: 'synReply', streamId: 3, fin: true },
    { type: 'ping', id: 1 },
    { type: 'data', streamId: 1, bytes: Buffer.from('out'), fin: true },
    { type: 'goAway', lastStreamId: 3, status: 0 },
  ]);
  await fromClient(rstStream(1, 5));
  expect(toRuntime()).toEqual([{ type: 'rstStream', streamId: 1, status: 5 }]);
});

test('the relay drops frames that a client may send but the runtime does not need', async () => {
  const { fromClient, toRuntime } = relay();
  await fromClient(open(1, 'stdin'));
  toRuntime();
  await fromClient(
    Buffer.concat([
      control(4, '00000001 00000004 00000064'),
      control(9, '00000001 00010000'),
      goAway(0, 0),
      data(1, ''),
    ]),
  );
  expect(toRuntime()).toEqual([]);
});

test('the relay sends data to the runtime in small frames, however large the frames of the client are', async () => {
  const { fromClient, toRuntime } = relay();
  await fromClient(Buffer.concat([open(1, 'stdin'), data(1, Buffer.alloc(100_000), true)]));
  const lengths = toRuntime().flatMap((frame) => (frame.type === 'data' ? [[frame.bytes.length, frame.fin]] : []));
  expect(lengths).toEqual([
    [32_768, false],
    [32_768, false],
    [32_768, false],
    [1696, true],
  ]);
});

test('the relay drops frames of a stream that has just ended', async () => {
  const { fromClient, fromRuntime, toClient, toRuntime } = relay();
  await fromClient(Buffer.concat([open(1, 'stdin'), open(3, 'stdout', false, true)]));
  await fromRuntime(Buffer.concat([rstStream(1, 5), data(3, 'x', true)]));
  toRuntime();
  toClient();
  await fromClient(Buffer.concat([data(1, 'late'), rstStream(1, 5), rstStream(3, 5)]));
  await fromRuntime(Buffer.concat([data(1, 'late'), rstStream(3, 5), synReply(3, { first: true })]));
  expect([...toRuntime(), ...toClient()]).toEqual([]);
});

test.each<[string, RelayRules, Buffer[], string]>([
  ['an even number', COMMAND, [open(2, 'stdin', true)], 'not open stream 2'],
  ['a repeated number', PORTS, [open(1, 'data'), open(1, 'error', false)], 'not open stream 1'],
  ['a smaller number', PORTS, [open(5, 'data', true), open(3, 'error', false)], 'not open stream 3'],
  ['an unsupported type', COMMAND, [open(1, 'data')], 'streams of type "data" are not supported'],
  ['a type twice', COMMAND, [open(1, 'stdin'), open(3, 'stdin', false)], 'second stream of type stdin'],
  ['a unidirectional stream', COMMAND, [control(1, '00000001 00000000 0000').fill(2, 4, 5)], 'unidirectional'],
  ['an associated stream', COMMAND, [control(1, '00000003 00000001 0000')], 'associated with another'],
  ['a reply', COMMAND, [open(1, 'stdin'), synReply(1, { first: false })], 'replied to stream 1'],
  ['data before its stream', COMMAND, [data(1, 'x')], 'used stream 1'],
  ['data of an even stream', COMMAND, [open(3, 'stdin', true), data(2, 'x')], 'used stream 2'],
  ['data after the end', COMMAND, [open(1, 'stdin'), data(1, 'x', true), data(1, 'y')], 'after the end of stream 1'],
  ['a reset of an unknown stream', COMMAND, [rstStream(7, 5)], 'used stream 7'],
  ['headers that cannot be read', COMMAND, [open(1, 'stdin'), control(8, '00000001 ff')], 'does not end with a flush'],
  ['an invalid terminal size', COMMAND, [open(1, 'resize'), data(1, '{}')], 'the size of a terminal'],
])('the relay refuses %s', async (_what, rules, frames, message) => {
  const { fromClient } = relay(rules);
  await expect(fromClient(Buffer.concat(frames))).rejects.toThrow(message);
});

test('the relay refuses streams beyond 1024 open streams individually until other streams end', async () => {
  const { fromClient, fromRuntime, toClient, toRuntime } = relay(PORTS);
  const id = (index: number): number => index * 2 + 1;
  for (let index = 0; index < 1025; index++) await fromClient(open(id(index), 'data'));
  expect(toRuntime()).toHaveLength(1024);
  expect(toClient()).toEqual([{ type: 'rstStream', streamId: id(1024), status: 3 }]);
  await fromClient(data(1, '', true));
  await fromRuntime(data(1, '', true));
  await fromClient(open(id(1025), 'data', false));
  expect(toRuntime().at(-1)).toMatchObject({ type: 'synStream', streamId: id(1025) });
});

/** Returns the frames for a forwarded connection. kubectl resets its data stream instead of ending it. */
const forwarded = (index: number): { opened: Buffer; answered: Buffer; reset: Buffer } => {
  const [error, both] = [index * 4 + 1, { port: '80', requestid: String(index) }];
  return {
    opened: Buffer.concat([
      synStream(error, { streamtype: 'error', ...both }, { first: index === 0, fin: true }),
      synStream(error + 2, { streamtype: 'data', ...both }, { first: false }),
    ]),
    answered: Buffer.concat([synReply(error, { first: index === 0 }), data(error, '', true)]),
    reset: rstStream(error + 2, 5),
  };
};

test('a port-forward client may forward and reset 5000 connections one after another', async () => {
  const { fromClient, fromRuntime, toClient, toRuntime } = relay(PORTS);
  let count = 0;
  for (let index = 0; index < 5000; index++) {
    const { opened, answered, reset } = forwarded(index);
    await fromClient(opened);
    // The runtime may end the error stream before or after the reset.
    await fromClient(index % 2 === 0 ? reset : ping(1));
    await fromRuntime(answered);
    await fromClient(index % 2 === 1 ? reset : ping(1));
    count += toRuntime().filter(({ type }) => type === 'synStream').length;
  }
  expect(count).toBe(10_000);
  expect(toClient().filter(({ type }) => type === 'rstStream')).toEqual([]);
});

test.each<[string, (index: number) => { opened: Buffer; reset: Buffer }]>([
  ['data only', (index) => ({ opened: open(index * 2 + 1, 'data'), reset: rstStream(index * 2 + 1, 5) })],
  [
    'error and data',
    (index) => {
      const { opened, reset } = forwarded(index);
      return { opened, reset: Buffer.concat([reset, rstStream(index * 4 + 1, 5)]) };
    },
  ],
])('streams that the client resets (%s) count as open while the runtime may keep them', async (_what, of) => {
  const now = vi.spyOn(performance, 'now').mockReturnValue(0);
  const { fromClient, toClient, toRuntime } = relay(PORTS);
  const opens = (): number => toRuntime().filter(({ type }) => type === 'synStream').length;
  for (let index = 0; index < 3000; index++) {
    const { opened, reset } = of(index);
    await fromClient(Buffer.concat([opened, reset]));
  }
  expect(opens()).toBeLessThanOrEqual(2048);
  expect(toClient().at(-1)).toMatchObject({ type: 'rstStream', status: 3 });
  now.mockReturnValue(30_000);
  await fromClient(of(3000).opened);
  expect(opens()).toBeGreaterThan(0);
});

test('a SPDY connection may open a limited number of streams in its lifetime', async () => {
  const { fromClient, fromRuntime, toRuntime } = relay(PORTS, 4);
  for (const index of [0, 1]) {
    const { opened, answered, reset } = forwarded(index);
    await fromClient(opened);
    await fromRuntime(answered);
    await fromClient(reset);
  }
  expect(toRuntime().filter(({ type }) => type === 'synStream')).toHaveLength(4);
  await expect(fromClient(forwarded(2).opened)).rejects.toThrow('more than 4 streams on a connection');
});

test('the relay yields between the frames of a client that opens 10,000 streams at once', async () => {
  const { fromClient } = relay(PORTS);
  const frames = Array.from({ length: 10_000 }, (_, index) => open(index * 2 + 1, 'data'));
  let [turns, over] = [0, false];
  const count = (): void => {
    turns++;
    if (!over) setImmediate(count);
  };
  setImmediate(count);
  await fromClient(Buffer.concat(frames));
  over = true;
  expect(turns).toBeGreaterThan(1);
});

test('a SPDY client that sends one frame does not wait for a client that sends many frames', async () => {
  const [many, one] = [relay(PORTS), relay(PORTS)];
  const frames = Array.from({ length: 10_000 }, (_, index) => open(index * 2 + 1, 'data'));
  let over = false;
  const passed = many.fromClient(Buffer.concat(frames)).then(() => {
    over = true;
  });
  await new Promise(setImmediate);
  await one.fromClient(open(1, 'data'));
  expect(one.toRuntime()).toHaveLength(1);
  expect(over).toBe(false);
  await passed;
});

test('a SPDY client may send at most 1024 HEADERS frames', async () => {
  const { fromClient, toRuntime } = relay();
  const empty = control(8, '00000001 00 0400 fbff 00000000 00 0000 ffff');
  await fromClient(Buffer.concat([open(1, 'stdin'), ...Array<Buffer>(1024).fill(empty)]));
  expect(toRuntime()).toHaveLength(1);
  await expect(fromClient(empty)).rejects.toThrow('more than 1024 HEADERS frames');
});

test('the stream that starts a command waits for the turn of the command', async () => {
  const [turn, awaited] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const start = {
    atStream: 2,
    turn: () => {
      awaited.resolve();
      return turn.promise;
    },
  };
  const { fromClient, toRuntime } = relay({ ...COMMAND, start });
  const passed = fromClient(Buffer.concat([open(1, 'error'), open(3, 'stdout', false)]));
  await awaited.promise;
  expect(toRuntime()).toMatchObject([{ type: 'synStream', streamId: 1 }]);
  turn.resolve();
  await passed;
  expect(toRuntime()).toMatchObject([{ type: 'synStream', streamId: 3 }]);
});

test('for any client bytes, the relay either throws a ProtocolError or writes valid frames', async () => {
  const valid = Buffer.concat([
    open(1, 'error'),
    open(3, 'stdin', false),
    open(5, 'resize', false),
    ping(1),
    data(3, 'some input'),
    data(5, '{"Width":80,"Height":24}\n'),
    data(3, '', true),
    rstStream(1, 5),
    goAway(0, 0),
  ]);
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.nat(valid.length - 1), fc.nat(255)), { maxLength: 4 }),
      fc.uint8Array({ maxLength: 40 }),
      fc.nat(valid.length),
      async (changes, extra, at) => {
        const sent = Buffer.from(valid);
        for (const [index, value] of changes) sent[index] = value;
        const { fromClient, toRuntime } = relay();
        const pieces = [sent.subarray(0, at), Buffer.from(extra), sent.subarray(at)];
        const failure = await fromClient(Buffer.concat(pieces)).catch((error: unknown) => error);
        if (failure !== undefined) expect(failure).toBeInstanceOf(ProtocolError);
        // The parser throws if a frame is not valid.
        const read = createHeaderReader();
        for (const frame of toRuntime()) {
          expect(['synStream', 'data', 'rstStream', 'ping']).toContain(frame.type);
          if (frame.type === 'synStream') expect(COMMAND.types).toContain(read(frame.block).get('streamtype'));
        }
      },
    ),
    { numRuns: 2000 },
  );
});
