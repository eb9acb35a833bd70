import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, readlinkSync } from 'node:fs';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { containerdPid } from '../../support/containerd.ts';
import { pod, WAIT } from '../../support/manifests.ts';
import { lifepod, useOwnEngine } from '../../support/own-engine.ts';
import {
  adminOf,
  flushed,
  hex,
  PROTOCOL_ERROR,
  SPDY,
  spdyControl,
  spdyData,
  spdyHeader,
  spdyStream,
  spdyStreams,
  upgrade,
} from '../../support/raw-streams.ts';

const BOX = '/api/v1/namespaces/default/pods/box';
const EXEC = `${BOX}/exec?container=app&command=cat&stdin=true&stdout=true`;
const TERMINAL = `${EXEC}&tty=true`;
const FORWARD = `${BOX}/portforward`;

/** Returns an empty string if the link has been removed because the file was closed. */
function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}

let containerd: number;

useOwnEngine();
beforeAll(async () => {
  await lifepod.apply(pod('box', { app: [{ name: 'app', script: WAIT }] }));
  await lifepod.wait('--for=condition=Ready', 'pod/box');
});

beforeEach(() => {
  containerd = containerdPid(lifepod);
});

afterEach(async () => {
  expect(await lifepod.kubectl('exec', 'box', '--', 'echo', 'still there')).toMatchObject({
    code: 0,
    stdout: 'still there\n',
  });
  expect(containerdPid(lifepod)).toBe(containerd);
});

const SETTINGS = spdyControl(4, hex('ffffffff 00000001 00000001'));
const stdin = spdyStream(1, spdyHeader('streamtype', 'stdin'));
const bomb = Buffer.concat([hex('00000001 00000001 61 00ffffff'), Buffer.alloc(8 * 1024 * 1024)]);

describe('over SPDY', () => {
  const cases: [string, string, Buffer][] = [
    ['a SETTINGS frame with 4,294,967,295 values in exec', EXEC, SETTINGS],
    ['a SETTINGS frame with 4,294,967,295 values in attach', `${BOX}/attach?container=app&stdout=true`, SETTINGS],
    ['a SETTINGS frame with 4,294,967,295 values in port-forward', FORWARD, SETTINGS],
    ['a stream with 4,294,967,295 headers', EXEC, spdyStream(1, hex('ffffffff'))],
    ['a stream with a header name of 4 GiB', EXEC, spdyStream(1, hex('00000001 ffffffff'))],
    ['a stream whose compressed headers grow a thousandfold', EXEC, spdyStream(1, bomb)],
    [
      'a HEADERS frame with 4,294,967,295 headers',
      EXEC,
      Buffer.concat([stdin, spdyControl(8, Buffer.concat([hex('00000001'), flushed(hex('ffffffff'))]))]),
    ],
    ['a reply to a stream that the client has opened', EXEC, Buffer.concat([stdin, spdyControl(2, hex('00000001'))])],
    ['a stream of an unknown type', EXEC, spdyStream(1, spdyHeader('streamtype', 'other'))],
    ['a stream with an even number', EXEC, spdyStream(2, spdyHeader('streamtype', 'stdin'))],
    ['a control frame of 16 MiB', EXEC, Buffer.concat([hex('80030001 00ffffff'), Buffer.alloc(64 * 1024)])],
    ['a PING frame without an ID', EXEC, spdyControl(6, Buffer.alloc(0))],
    ['a frame of an unknown type', EXEC, spdyControl(99, hex('00000000'))],
    ['a frame of another SPDY version', EXEC, hex('80020006 00000004 00000001')],
    ['data of a missing stream', EXEC, spdyData(3, Buffer.from('x'))],
    ['a frame of random bytes', EXEC, Buffer.concat([hex('ff'), randomBytes(4096)])],
    [
      'a terminal size without an end',
      TERMINAL,
      Buffer.concat([
        spdyStream(1, spdyHeader('streamtype', 'resize')),
        spdyData(1, Buffer.alloc(64 * 1024, '{"a":"}')),
      ]),
    ],
  ];
  test.each(cases)('over SPDY, %s ends the connection with a protocol error', async (_attack, path, bytes) => {
    const protocol = path === FORWARD ? 'portforward.k8s.io' : 'v4.channel.k8s.io';
    const { socket, closed } = await upgrade(lifepod.kubeconfig, path, {
      ...SPDY,
      'X-Stream-Protocol-Version': protocol,
    });
    socket.write(bytes);
    expect((await closed).subarray(-PROTOCOL_ERROR.length)).toEqual(PROTOCOL_ERROR);
  });

  test('over SPDY, the data in a frame of 16 MiB is received completely', async () => {
    const { socket, closed } = await upgrade(lifepod.kubeconfig, EXEC, SPDY);
    const sent = Buffer.alloc(0xff_ffff, 'a line of the client\n');
    socket.write(
      Buffer.concat([spdyStreams('stdin', 'stdout', 'error'), spdyData(1, sent), hex('00000001 01 000000')]),
    );
    let rest = await closed;
    const received: Buffer[] = [];
    while (rest.length >= 8) {
      const end = 8 + rest.readUIntBE(5, 3);
      if (rest.readUInt32BE(0) === 3) received.push(rest.subarray(8, end));
      rest = rest.subarray(end);
    }
    expect(Buffer.concat(received).equals(sent)).toBe(true);
  });
});

test.each([
  ['exec', EXEC],
  ['port-forward', FORWARD],
])('a refused %s request leaves no open connection to the runtime', async (_request, path) => {
  const sockets = (): number =>
    readdirSync(`/proc/${lifepod.pid()}/fd`).filter((fd) =>
      linkOf(`/proc/${lifepod.pid()}/fd/${fd}`).startsWith('socket:'),
    ).length;
  const before = sockets();
  for (let i = 0; i < 20; i++) {
    const refused = upgrade(lifepod.kubeconfig, path, { Upgrade: 'SPDY/3.1', 'X-Stream-Protocol-Version': 'x' });
    await expect(refused).rejects.toThrow('got the response 403');
  }
  await expect.poll(sockets).toBeLessThan(before + 10);
});

/** These bytes follow the frames that open the streams. */
const endings: [string, Buffer][] = [
  ['ends its connection', Buffer.alloc(0)],
  ['breaks the protocol', spdyControl(99, hex('00000000'))],
];

test.each(endings)(
  'a container can be deleted in time after 50 attach clients have connected, each of which immediately %s',
  async (how, ending) => {
    const name = how.replaceAll(' ', '-');
    await lifepod.apply(pod(name, { app: [{ name: 'app', script: WAIT }] }));
    await lifepod.wait('--for=condition=Ready', `pod/${name}`);
    const path = `/api/v1/namespaces/default/pods/${name}/attach?container=app&stdout=true`;
    for (let i = 0; i < 50; i++) {
      const { socket, closed } = await upgrade(lifepod.kubeconfig, path, SPDY);
      socket.end(Buffer.concat([spdyStreams('error', 'stdout'), ending]));
      await closed;
    }
    // If the connections kept the container from exiting, the deletion would take longer than its grace period of 30 s.
    await lifepod.delete('pod', name, '--timeout=20s');
  },
);

describe('over WebSocket', () => {
  const open = async (path: string, protocol?: string) => {
    const { host, port, ...tls } = adminOf(lifepod.kubeconfig);
    const url = `wss://${host}:${port}${path}`;
    const socket = new WebSocket(url, protocol === undefined ? [] : [protocol], tls);
    const messages: Buffer[] = [];
    socket.on('message', (message: Buffer) => messages.push(message));
    const closed = once(socket, 'close') as Promise<[number, Buffer]>;
    await once(socket, 'open');
    return { socket, messages, closed };
  };

  test('the WebSocket tunnel of port-forward refuses malformed SPDY frames', async () => {
    const { socket, closed } = await upgrade(lifepod.kubeconfig, FORWARD, {
      Upgrade: 'websocket',
      'Sec-WebSocket-Version': '13',
      'Sec-WebSocket-Key': randomBytes(16).toString('base64'),
      'Sec-WebSocket-Protocol': 'SPDY/3.1+portforward.k8s.io',
    });
    // One binary message with the SETTINGS frame, masked with zeros.
    socket.write(Buffer.concat([Buffer.of(0x82, 0x80 + SETTINGS.length, 0, 0, 0, 0), SETTINGS]));
    const received = await closed;
    expect(received.includes(hex('03ea'))).toBe(true);
    expect(received.toString('latin1')).toContain('the client sent a frame of type 4 with 12 bytes');
  });

  test('over WebSocket, a terminal size without an end is refused', async () => {
    const { socket, messages, closed } = await open(TERMINAL, 'v5.channel.k8s.io');
    socket.send(Buffer.alloc(64 * 1024, '\x04{"Width":'));
    expect((await closed)[0]).toBe(1000);
    const status = messages.findLast((message) => message[0] === 3)?.toString('utf8', 1) ?? '{}';
    expect(JSON.parse(status)).toMatchObject({
      reason: 'BadRequest',
      message: 'the size of a terminal has more than 1024 bytes',
    });
  });

  test.each([
    ['channel.k8s.io', Buffer.alloc(64 * 1024, '\x04{"Width":')],
    ['base64.channel.k8s.io', `4${Buffer.alloc(48 * 1024, '{"Width":').toString('base64')}`],
  ])('a terminal size without an end is refused with the older WebSocket subprotocol %s', async (protocol, message) => {
    const { socket, closed } = await open(TERMINAL, protocol);
    socket.send(message);
    const [code, reason] = await closed;
    expect([code, reason.toString()]).toEqual([1002, 'the size of a terminal has more than 1024 bytes']);
  });

  test.each([
    [
      'the subprotocol channel.k8s.io',
      'channel.k8s.io',
      (text: string) => Buffer.from(`\0${text}`),
      (message: Buffer) => message.toString('utf8', 1),
    ],
    [
      'no subprotocol',
      undefined,
      (text: string) => Buffer.from(`\0${text}`),
      (message: Buffer) => message.toString('utf8', 1),
    ],
    [
      'the subprotocol base64.channel.k8s.io',
      'base64.channel.k8s.io',
      (text: string) => `0${Buffer.from(text).toString('base64')}`,
      (message: Buffer) => Buffer.from(message.toString('utf8', 1), 'base64').toString(),
    ],
  ] as const)('a WebSocket with %s carries input and output', async (_subprotocol, protocol, encode, decode) => {
    const { socket, messages, closed } = await open(EXEC.replace('command=cat', 'command=head&command=-n1'), protocol);
    expect(socket.protocol).toBe(protocol ?? '');
    socket.send(encode('there and back\n'));
    await closed;
    expect(messages.map(decode).join('')).toBe('there and back\n');
  });

  test('if several clients send large WebSocket messages without an end, the largest message is refused', async () => {
    const begin = async (mebibytes: number) => {
      const connection = await upgrade(lifepod.kubeconfig, EXEC, {
        Upgrade: 'websocket',
        'Sec-WebSocket-Version': '13',
        'Sec-WebSocket-Key': randomBytes(16).toString('base64'),
        'Sec-WebSocket-Protocol': 'v5.channel.k8s.io',
      });
      const sent = new Promise((resolve) => {
        // The header of a message of 31 MiB, and then a part of the message.
        connection.socket.write(hex('82 ff 0000000001f00000 00000000'));
        connection.socket.write(Buffer.alloc(mebibytes * 2 ** 20), resolve);
      });
      return { ...connection, sent };
    };
    const [large, others] = [await begin(30), [await begin(20), await begin(20)]];
    // A close frame with the status 1013, try again later.
    expect((await large.closed).includes(hex('03f5'))).toBe(true);
    await Promise.all(others.map(({ sent }) => sent));
    for (const { socket, closed } of others) {
      expect(socket.destroyed).toBe(false);
      socket.destroy();
      await closed;
    }
  });

  test.each(['channel.k8s.io', 'v5.channel.k8s.io'])(
    'a WebSocket frame that claims 2^62 bytes is refused with the subprotocol %s',
    async (protocol) => {
      const { socket, closed } = await upgrade(lifepod.kubeconfig, EXEC, {
        Upgrade: 'websocket',
        'Sec-WebSocket-Version': '13',
        'Sec-WebSocket-Key': randomBytes(16).toString('base64'),
        'Sec-WebSocket-Protocol': protocol,
      });
      socket.write(hex('82 ff 4000000000000000 00000000 00'));
      // A close frame with the status 1009, the message is too big.
      expect((await closed).includes(hex('03f1'))).toBe(true);
    },
  );
});
