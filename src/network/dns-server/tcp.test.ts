import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { expect, onTestFinished, test, vi } from 'vitest';
import { openListener, portOf, serve } from './listeners.ts';
import { serveConnection, withLength } from './tcp.ts';

const message = (bytes: number): Buffer => withLength(Buffer.alloc(bytes, 1));
const unexpected = (error: Error): never => {
  throw error;
};

test('the DNS server pauses processing the queries of a TCP client while the client does not read the responses', async () => {
  const count = 1000;
  const answer = Buffer.alloc(60_000);
  let asked = 0;
  let written = 0;
  let reads = false;
  let readOn = (): void => {};
  const socket = new Duplex({
    read: () => {},
    write: (chunk: Buffer, _, done) => {
      written += chunk.length;
      if (reads) done();
      else readOn = done;
    },
  });
  const ended = once(socket, 'finish');
  serveConnection(
    socket as Socket,
    async () => {
      asked += 1;
      return answer;
    },
    unexpected,
  );
  socket.push(Buffer.concat(Array.from({ length: count }, () => message(40))));
  socket.push(null);
  for (let turn = 0; turn < 100; turn++) await new Promise(setImmediate);
  expect(asked).toBeGreaterThan(0);
  expect(asked).toBeLessThan(10);
  reads = true;
  readOn();
  await ended;
  expect(written).toBe(count * (2 + answer.length));
});

async function listen(answer: () => Promise<Buffer> | Buffer): Promise<number> {
  const listener = await openListener('127.0.0.1', 0);
  const serving = serve(listener, answer, unexpected);
  onTestFinished(() => serving.close());
  return portOf(listener.tcp);
}

test('a DNS client that has closed its side of a TCP connection still gets all responses, also those that come late', async () => {
  const port = await listen(async () => {
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
    return Buffer.alloc(60_000);
  });
  const client = connect(port, '127.0.0.1');
  client.end(Buffer.concat(Array.from({ length: 20 }, () => message(40))));
  let bytes = 0;
  for await (const chunk of client) bytes += chunk.length;
  expect(bytes).toBe(20 * 60_002);
});

test('the length and the message may arrive in pieces', async () => {
  const client = connect(await listen(() => Buffer.from('answer')), '127.0.0.1');
  const query = message(300);
  for (const [from, to] of [
    [0, 1],
    [1, 7],
    [7, 302],
  ]) {
    client.write(query.subarray(from, to));
    await new Promise(setImmediate);
  }
  const [response] = (await once(client, 'data')) as [Buffer];
  expect(response).toEqual(withLength(Buffer.from('answer')));
  client.destroy();
});

async function openAnswered(port: number, localAddress: string): Promise<Socket> {
  const client = connect({ port, host: '127.0.0.1', localAddress });
  onTestFinished(() => {
    client.destroy();
  });
  await askAgain(client);
  return client;
}

async function askAgain(client: Socket): Promise<void> {
  client.write(message(40));
  await once(client, 'data');
}

/** Opens the connections one after another, so that the server accepts them in the order of the result. */
async function openMany(port: number, count: number, localAddress: string): Promise<Socket[]> {
  const opened: Socket[] = [];
  for (let i = 0; i < count; i++) opened.push(await openAnswered(port, localAddress));
  return opened;
}

test('the 65th connection of a client replaces the one that has been idle longest, and those of others remain', async () => {
  const port = await listen(() => Buffer.from('answer'));
  const other = await openAnswered(port, '127.0.0.9');
  const [first, second, ...rest] = (await openMany(port, 64, '127.0.0.1')) as [Socket, Socket, ...Socket[]];
  await askAgain(first);
  const closed = once(second, 'close');
  const added = await openAnswered(port, '127.0.0.1');
  await closed;
  for (const each of [other, first, added, ...rest]) await askAgain(each);
});

test('while four clients hold all other connections, a client keeps the one that is idle, and another client gets one', async () => {
  const port = await listen(() => Buffer.from('answer'));
  const idlest = await openAnswered(port, '127.0.0.9');
  const held: Socket[] = [];
  for (const address of ['127.0.0.1', '127.0.0.2', '127.0.0.3', '127.0.0.4'])
    held.push(...(await openMany(port, 64, address)));
  const late = await openAnswered(port, '127.0.0.10');
  await askAgain(idlest);
  await askAgain(late);
  await vi.waitFor(() => expect(held.filter(({ destroyed }) => !destroyed)).toHaveLength(254), { timeout: 10_000 });
});

/** Serves a connection with fake timers. `write` gets a function that reports that the client has read a response. `wait` lets 6 s pass. */
function connectionOf(
  answer: Buffer,
  write: (done: () => void) => void,
): { socket: Duplex; wait: () => Promise<void> } {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const socket = new Duplex({ read: () => {}, write: (_chunk, _encoding, done) => write(done) });
  serveConnection(socket as Socket, () => answer, unexpected);
  const wait = async (): Promise<void> => {
    for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate);
    await vi.advanceTimersByTimeAsync(6000);
  };
  return { socket, wait };
}

test('a client that sends a query byte by byte loses its connection after 10 s, although it is not silent', async () => {
  const { socket, wait } = connectionOf(Buffer.from('answer'), (done) => done());
  for (const byte of message(40).subarray(0, 3)) {
    socket.push(Buffer.of(byte));
    await wait();
  }
  expect(socket.destroyed).toBe(true);
});

test('a client that does not read its responses loses its connection after 10 s, although it sends queries', async () => {
  const { socket, wait } = connectionOf(Buffer.alloc(60_000), () => undefined);
  for (let i = 0; i < 3; i++) {
    socket.push(Buffer.concat([message(40), message(40)]));
    await wait();
  }
  expect(socket.destroyed).toBe(true);
});

test('a client that sends a query every 6 s keeps its connection, and loses it when it sends no more', async () => {
  const { socket, wait } = connectionOf(Buffer.from('answer'), (done) => done());
  for (let i = 0; i < 5; i++) {
    socket.push(message(40));
    await wait();
  }
  expect(socket.destroyed).toBe(false);
  await wait();
  expect(socket.destroyed).toBe(true);
});
