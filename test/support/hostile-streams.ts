/** Generates hostile bytes for the streams of a container: SPDY and WebSocket frames, which may be invalid or damaged. */
import fc from 'fast-check';
import { damaged, hostileText } from './hostile-values.ts';
import { hex, spdyControl, spdyData, spdyHeader, spdyStream, spdyStreams } from './raw-streams.ts';

export interface HostileStream {
  /** The subresource with its query, such as exec?container=app. */
  stream: string;
  headers: Record<string, string>;
  /** One character per byte (latin1). */
  bytes: string;
}

const COMMAND = 'container=app&command=cat&stdin=true&stdout=true';
const STREAMS = [`exec?${COMMAND}`, `exec?${COMMAND}&tty=true`, 'attach?container=app&stdout=true', 'portforward'];

const spdyFrame: fc.Arbitrary<Buffer> = fc.oneof(
  fc.constantFrom(
    spdyStreams('stdin', 'stdout', 'error'),
    spdyStreams('error', 'data'),
    spdyStream(1, spdyHeader('streamtype', 'resize')),
    spdyControl(6, hex('00000001')),
    spdyControl(3, hex('00000001 00000005')),
    spdyControl(7, hex('00000000 00000000')),
    spdyControl(4, hex('00000001 01000004 00000064')),
    spdyControl(9, hex('00000001 7fffffff')),
    spdyData(1, Buffer.from('{"Width":80,"Height":24}')),
  ),
  fc
    .tuple(hostileText, hostileText)
    .map(([name, value]) => spdyStream(1, spdyHeader(name.slice(0, 60), value.slice(0, 60)))),
  fc.tuple(fc.nat(0x7fff), fc.uint8Array({ maxLength: 40 })).map(([type, payload]) => spdyControl(type, payload)),
  fc
    .tuple(fc.constantFrom(1, 2, 3, 2 ** 31 - 1), fc.uint8Array({ maxLength: 40 }), fc.constantFrom(0, 40, 0xff_ffff))
    .map(([id, bytes, length]) => spdyData(id, Buffer.from(bytes), length)),
);

/** The messages have the digit of a channel, then valid or invalid base64. */
const base64Message: fc.Arbitrary<Uint8Array> = fc
  .tuple(fc.constantFrom('0', '4', '9', ''), fc.oneof(fc.base64String({ maxLength: 80 }), fc.string({ maxLength: 80 })))
  .map(([channel, text]) => Buffer.from(`${channel}${text}`).subarray(0, 100));

/** The frames are masked with zeros or not masked. */
const webSocketFrame: fc.Arbitrary<Buffer> = fc
  .tuple(
    fc.constantFrom(0x80, 0x00, 0xf0),
    fc.nat(15),
    fc.oneof(fc.uint8Array({ maxLength: 100 }), base64Message),
    fc.boolean(),
  )
  .map(([flags, code, payload, masked]) =>
    Buffer.concat([
      Buffer.of(flags + code, (masked ? 0x80 : 0) + payload.length),
      Buffer.alloc(masked ? 4 : 0),
      Buffer.from(payload),
    ]),
  );

const SUBPROTOCOLS = [
  'v4.channel.k8s.io',
  'v5.channel.k8s.io',
  'channel.k8s.io',
  'base64.channel.k8s.io',
  'v4.base64.channel.k8s.io',
  'SPDY/3.1+portforward.k8s.io',
  'x',
];

const framesOf = (frame: fc.Arbitrary<Buffer>): fc.Arbitrary<string> =>
  damaged(fc.array(frame, { maxLength: 6 }).map((frames) => Buffer.concat(frames))).map((bytes) =>
    bytes.toString('latin1'),
  );

const overSpdy: fc.Arbitrary<HostileStream> = fc.record({
  stream: fc.constantFrom(...STREAMS),
  headers: fc
    .constantFrom('v4.channel.k8s.io', 'v5.channel.k8s.io', 'portforward.k8s.io', 'x')
    .map((protocol) => ({ Upgrade: 'SPDY/3.1', 'X-Stream-Protocol-Version': protocol })),
  bytes: framesOf(spdyFrame),
});

const overWebSocket: fc.Arbitrary<HostileStream> = fc.record({
  stream: fc.constantFrom(...STREAMS),
  headers: fc.constantFrom(...SUBPROTOCOLS).map((protocol) => ({
    Upgrade: 'websocket',
    'Sec-WebSocket-Version': '13',
    'Sec-WebSocket-Key': 'AAAAAAAAAAAAAAAAAAAAAA==',
    'Sec-WebSocket-Protocol': protocol,
  })),
  bytes: framesOf(webSocketFrame),
});

export const hostileStream: fc.Arbitrary<HostileStream> = fc.oneof(overSpdy, overWebSocket);
