/** The requests go through kubectl proxy with the WebSocket of Node.js, and directly. */
import { once } from 'node:events';
import { expect } from 'vitest';
import { WebSocket as DirectSocket } from 'ws';
import { type ClientCommand, startClient } from '../support/client-command.ts';
import { KUBECTL } from '../support/kubectl.ts';
import { pod } from '../support/manifests.ts';
import { isReady } from '../support/pods.ts';
import { adminOf } from '../support/raw-streams.ts';
import { lifepod, record, testInFileNamespace as test } from '../support/shared-engine.ts';

let proxy: ClientCommand;
let address: string;
test.beforeAll(async () => {
  proxy = startClient(lifepod, KUBECTL, ['proxy', '--port=0']);
  [, address = ''] = await proxy.printed(/Starting to serve on (\S+)/);
});
test.afterAll(async () => {
  proxy.kill('SIGTERM');
  await proxy.ended;
});

interface Client {
  protocol: string;
  /** A text, or bytes. */
  next(): Promise<string | Buffer>;
  /** The code of the close frame. */
  closed: Promise<number>;
  close(): void;
}

function collect(socket: WebSocket | DirectSocket): Pick<Client, 'next' | 'closed'> {
  const messages: (string | Buffer)[] = [];
  const waiting: ((message: string | Buffer) => void)[] = [];
  const target = socket as WebSocket;
  target.binaryType = 'arraybuffer';
  target.addEventListener('message', ({ data }) => {
    const message = typeof data === 'string' ? data : Buffer.from(data as ArrayBuffer);
    const take = waiting.shift();
    if (take === undefined) messages.push(message);
    else take(message);
  });
  const closed = new Promise<number>((resolve) => target.addEventListener('close', ({ code }) => resolve(code)));
  return { closed, next: async () => messages.shift() ?? new Promise((resolve) => waiting.push(resolve)) };
}

async function throughProxy(path: string, protocols: string[] = []): Promise<Client> {
  const socket = new WebSocket(`ws://${address}${path}`, protocols);
  const collected = collect(socket);
  await once(socket, 'open');
  return { ...collected, protocol: socket.protocol, close: () => socket.close() };
}

async function directly(path: string, protocols: string[] = []): Promise<Client> {
  const { host, port, ...tls } = adminOf(lifepod.kubeconfig);
  const socket = new DirectSocket(`wss://${host}:${port}${path}`, protocols, tls);
  const collected = collect(socket);
  await once(socket, 'open');
  return { ...collected, protocol: socket.protocol, close: () => socket.close() };
}

const CONNECTIONS = [
  { through: 'kubectl proxy', connect: throughProxy },
  { through: 'TLS', connect: directly },
];

test.each(CONNECTIONS)('a watch over WebSocket through $through sends the events of a Pod', async ({ connect }) => {
  const name = `watched-${connect.name.toLowerCase()}`;
  const path = `/api/v1/namespaces/${lifepod.namespace}/pods?watch=1&fieldSelector=metadata.name%3D${name}`;
  const { next, close, closed } = await connect(path);
  await lifepod.apply(pod(name));
  const seen: string[] = [];
  for (;;) {
    const { type, object } = JSON.parse(String(await next()));
    expect(object.metadata.name).toBe(name);
    seen.push(`${type} ${object.status.phase}`);
    if (object.status.phase === 'Running') break;
  }
  expect(seen[0]).toBe('ADDED Pending');
  await lifepod.delete('pod', name, '--now');
  for (;;) if (JSON.parse(String(await next())).type === 'DELETED') break;
  close();
  await closed;
});

test.each(CONNECTIONS)('a log over WebSocket through $through is followed line by line', async ({ connect }) => {
  const name = `logs-${connect.name.toLowerCase()}`;
  const script = 'echo first; read line < /pipe/in; echo "$line"; exit 0';
  const make = { name: 'make', script: 'mkfifo /pipe/in', volumeMounts: [{ name: 'pipe', mountPath: '/pipe' }] };
  const app = { name: 'app', script, volumeMounts: make.volumeMounts };
  const spec = { volumes: [{ name: 'pipe', emptyDir: {} }], restartPolicy: 'Never' };
  await lifepod.apply(pod(name, { init: [make], app: [app], spec }));
  await record.until(name, isReady);
  const path = `/api/v1/namespaces/${lifepod.namespace}/pods/${name}/log`;
  const followed = await connect(`${path}?follow=true`, ['base64.binary.k8s.io']);
  expect(followed.protocol).toBe('base64.binary.k8s.io');
  expect(await followed.next()).toBe('');
  expect(await followed.next()).toBe(Buffer.from('first\n').toString('base64'));
  // The line ends the container, which may kill this command before its exit. The next message shows that the command wrote the line.
  await lifepod.kubectl('exec', name, '--', 'sh', '-c', 'echo second > /pipe/in');
  expect(await followed.next()).toBe(Buffer.from('second\n').toString('base64'));
  expect(await followed.closed).toBe(1000);
  const whole = await connect(path, ['binary.k8s.io']);
  const pieces: Buffer[] = [];
  while (Buffer.concat(pieces).length < 'first\nsecond\n'.length) pieces.push(Buffer.from(await whole.next()));
  expect(Buffer.concat(pieces).toString()).toBe('first\nsecond\n');
  expect(await whole.closed).toBe(1000);
});
