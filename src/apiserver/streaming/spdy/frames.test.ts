import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createFrameParser, dataHead, type Frame, ping, synStream } from './frames.ts';

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(/[\s|]/g, ''), 'hex');

describe('writing frames', () => {
  test('synStream() writes the frame of the specification', () => {
    const frame = synStream(3, { a: 'b' }, { first: false });
    // Control bit and version 3, type 1 | no flags, length | stream, associated stream | priority, slot. The header block follows.
    expect(frame.subarray(0, 18)).toEqual(hex('8003 0001 | 00 000022 | 00000003 00000000 | 0000'));
    expect(frame).toHaveLength(8 + 0x22);
    expect(synStream(1, { a: 'b' }, { first: true })).toHaveLength(frame.length + 6);
  });

  test('dataHead() writes the head of a DATA frame', () => {
    expect(dataHead(5, 32_768, false)).toEqual(hex('00000005 00 008000'));
    expect(dataHead(5, 0, true)).toEqual(hex('00000005 01 000000'));
  });

  test('ping() writes a PING frame', () => {
    expect(ping(2)).toEqual(hex('8003 0006 00 000004 00000002'));
  });
});

const parseAll = (bytes: Buffer): Frame[] => createFrameParser('the peer')(bytes);

describe('parsing frames', () => {
  test.each<[string, string, Frame[]]>([
    ['SYN_REPLY', '8003 0002 00 000008 00000001 cafecafe', [{ type: 'synReply', streamId: 1, fin: false }]],
    ['SYN_REPLY with FIN', '8003 0002 01 000004 00000007', [{ type: 'synReply', streamId: 7, fin: true }]],
    ['RST_STREAM', '8003 0003 00 000008 00000003 00000005', [{ type: 'rstStream', streamId: 3, status: 5 }]],
    ['PING', '8003 0006 00 000004 00000002', [{ type: 'ping', id: 2 }]],
    ['GOAWAY', '8003 0007 00 000008 00000009 00000000', [{ type: 'goAway', lastStreamId: 9, status: 0 }]],
    ['WINDOW_UPDATE', '8003 0009 00 000008 00000003 00010000', [{ type: 'windowUpdate', streamId: 3, delta: 65_536 }]],
    ['SETTINGS', '8003 0004 00 00000c 00000001 00000004 00000064', [{ type: 'settings' }]],
    [
      'SYN_STREAM',
      '8003 0001 03 00000b 80000005 00000003 0000 78',
      [{ type: 'synStream', streamId: 5, associatedId: 3, fin: true, unidirectional: true, block: hex('78') }],
    ],
    ['HEADERS', '8003 0008 00 000005 00000003 78', [{ type: 'headers', streamId: 3, block: hex('78') }]],
    ['an empty DATA frame as nothing', '00000003 00 000000', []],
    ['the end of a stream', '00000003 01 000000', [{ type: 'data', streamId: 3, bytes: Buffer.alloc(0), fin: true }]],
    ['DATA', '00000003 00 000002 6869', [{ type: 'data', streamId: 3, bytes: Buffer.from('hi'), fin: false }]],
  ])('the parser parses %s', (_name, bytes, frames) => {
    expect(parseAll(hex(bytes))).toEqual(frames);
  });

  test('the parser returns DATA as it arrives, with fin on the last piece', () => {
    const parse = createFrameParser('the peer');
    expect(parse(hex('00000003 01 000004 61'))).toEqual([
      { type: 'data', streamId: 3, bytes: Buffer.from('a'), fin: false },
    ]);
    expect(parse(hex('6263'))).toEqual([{ type: 'data', streamId: 3, bytes: Buffer.from('bc'), fin: false }]);
    expect(parse(hex('64'))).toEqual([{ type: 'data', streamId: 3, bytes: Buffer.from('d'), fin: true }]);
  });

  test.each([
    ['HTTP', Buffer.from('\xc8HTTP/1.1 400', 'latin1')],
    ['another version', hex('8002 0001 00 000004 00000000')],
    ['a control frame that is too large to buffer', hex('8003 0002 00 004001')],
    ['an unknown type', hex('8003 0005 00 000000')],
    ...(
      [
        ['SYN_STREAM', 1, 9],
        ['SYN_REPLY', 2, 3],
        ['RST_STREAM', 3, 4],
        ['RST_STREAM', 3, 9],
        ['SETTINGS', 4, 0],
        ['SETTINGS', 4, 12],
        ['PING', 6, 3],
        ['PING', 6, 5],
        ['GOAWAY', 7, 4],
        ['HEADERS', 8, 0],
        ['WINDOW_UPDATE', 9, 4],
      ] as const
    ).map(([name, type, length]): [string, Buffer] => [
      `${name} of ${length} bytes`,
      Buffer.concat([hex(`8003 000${type} 00 0000${length.toString(16).padStart(2, '0')}`), Buffer.alloc(length)]),
    ]),
    ['SETTINGS with a count beyond its length', hex('8003 0004 00 00000c ffffffff 00000001 00000001')],
  ])('the parser refuses %s', (_name, bytes) => {
    expect(() => parseAll(bytes)).toThrow('the peer');
  });
});

const streamId = fc.integer({ min: 1, max: 0x7fff_ffff });
const frame = fc.oneof(
  fc.record({
    type: fc.constant('data' as const),
    streamId,
    bytes: fc.uint8Array({ maxLength: 300 }),
    fin: fc.boolean(),
  }),
  fc.record({ type: fc.constant('ping' as const), id: fc.nat(0xffff_ffff) }),
);
const encode = (
  each: { type: 'data'; streamId: number; bytes: Uint8Array; fin: boolean } | { type: 'ping'; id: number },
) =>
  each.type === 'ping'
    ? ping(each.id)
    : Buffer.concat([dataHead(each.streamId, each.bytes.length, each.fin), each.bytes]);

function merged(frames: readonly Frame[]): unknown[] {
  const result: { type: string; streamId?: number; bytes?: string; fin?: boolean }[] = [];
  for (const each of frames) {
    const last = result.at(-1);
    if (each.type !== 'data') result.push({ ...each });
    else if (last?.type === 'data' && last.streamId === each.streamId && last.fin === false) {
      last.bytes += Buffer.from(each.bytes).toString('hex');
      last.fin = each.fin;
    } else result.push({ ...each, bytes: Buffer.from(each.bytes).toString('hex') });
  }
  return result;
}

test('the parser returns the same frames however the bytes are split', () => {
  fc.assert(
    fc.property(
      fc.array(frame, { maxLength: 12 }),
      fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1 }),
      (sent, sizes) => {
        const bytes = Buffer.concat(sent.map(encode));
        const parse = createFrameParser('the peer');
        const frames: Frame[] = [];
        for (let at = 0, turn = 0; at < bytes.length; turn++) {
          const size = sizes[turn % sizes.length] ?? 1;
          // As from a socket, each call gets a separate buffer.
          frames.push(...parse(Buffer.from(bytes.subarray(at, at + size))));
          at += size;
        }
        const whole = sent.filter((each) => each.type === 'ping' || each.fin || each.bytes.length > 0);
        expect(merged(frames)).toEqual(merged(whole));
      },
    ),
  );
});
