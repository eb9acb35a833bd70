/** The test server has CRI's stream and containerd's own stream; the containerd of Debian 12 has only the latter. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  Server,
  ServerCredentials,
  type ServerWritableStream,
  type ServiceDefinition,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { afterEach, expect, test } from 'vitest';
import { systemTimers } from '../../../platform/node-js.ts';
import type { Log } from '../../../platform/platform.ts';
import type { ShimExits } from '../../containerd/shim-exits.ts';
import type { ContainerRuntime, RuntimeEvent } from '../../runtime.ts';
import { connect } from '../connection.ts';
import { connectRuntime } from '../cri-runtime.ts';
import { POD_UID_LABEL } from '../labels.ts';

const log: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => log,
};
const definition = loadSync(
  ['cri.proto', 'containerd-events.proto'].map((file) => fileURLToPath(new URL(`../protos/${file}`, import.meta.url))),
);
const service = (name: string): ServiceDefinition => definition[name] as unknown as ServiceDefinition;

type Answer = (error: null, response: object) => void;
type Stream = ServerWritableStream<object, object>;

let folder: string;
let server: Server;
let streams: Stream[];
let subscriptions: Stream[];
let received: RuntimeEvent[];
let listed: { id: string }[] = [];
let wake: () => void;
let runtime: ContainerRuntime;
let end: AbortController;
let ended: Promise<void>;

async function receivedCount(count: number): Promise<RuntimeEvent[]> {
  while (received.length < count) {
    await new Promise<void>((resolve) => {
      wake = resolve;
    });
  }
  return received;
}

async function connectTo(runtimeName: string, shimExits?: ShimExits): Promise<void> {
  folder = mkdtempSync(join(tmpdir(), 'lifepod-cri-events-'));
  streams = [];
  subscriptions = [];
  received = [];
  wake = () => undefined;
  server = new Server();
  const calls: UntypedServiceImplementation = {
    Version: (_call: unknown, answer: Answer) =>
      answer(null, { runtimeName, runtimeVersion: '1', runtimeApiVersion: 'v1' }),
    Status: (_call: unknown, answer: Answer) => answer(null, {}),
    ListContainers: ({ request }: { request: { filter?: { id: string } } }, answer: Answer) =>
      answer(null, { containers: listed.filter(({ id }) => [id, ''].includes(request.filter?.id ?? '')) }),
    ListPodSandbox: (_call: unknown, answer: Answer) => answer(null, {}),
    GetContainerEvents: (stream: Stream) => void streams.push(stream),
  };
  server.addService(service('runtime.v1.RuntimeService'), calls);
  server.addService(service('containerd.services.events.v1.Events'), {
    Subscribe: (stream: Stream) => void subscriptions.push(stream),
    Publish: ({ request }: { request: object }, answer: Answer) => {
      for (const stream of subscriptions) stream.write({ ...request, namespace: 'k8s.io' });
      answer(null, {});
    },
  });
  const endpoint = `unix://${join(folder, 'cri.sock')}`;
  await new Promise<void>((resolve, reject) =>
    server.bindAsync(endpoint, ServerCredentials.createInsecure(), (error) => (error ? reject(error) : resolve())),
  );
  runtime = await connectRuntime({
    endpoint,
    log,
    timers: systemTimers(),
    namespaceLabels: { 'lifepod.io/instance': 'mine' },
    shimExits,
  });
  end = new AbortController();
  ended = listen();
}

const listen = (): Promise<void> =>
  runtime.events((event) => {
    received.push(event);
    wake();
  }, end.signal);

afterEach(async () => {
  listed = [];
  end.abort();
  await ended;
  await runtime.close();
  server.forceShutdown();
  rmSync(folder, { recursive: true, force: true });
});

const event = (uid: string, labels: Record<string, string>): object => ({
  containerId: 'c',
  podSandboxStatus: { id: 's', metadata: { uid }, labels },
});
const mine = { 'lifepod.io/attempt': '0', 'lifepod.io/instance': 'mine' };

test("all listeners share one subscription to containerd's events, and CRI's stream is not opened", async () => {
  await connectTo('containerd');
  await receivedCount(1);
  const second = listen();
  expect(await receivedCount(2)).toEqual([{ type: 'resync' }, { type: 'resync' }]);
  expect([subscriptions.length, streams.length]).toEqual([1, 0]);
  end.abort();
  await second;
});

test('events() reports changes only of Pods with the labels of this instance', async () => {
  await connectTo('cri-o');
  expect(await receivedCount(1)).toEqual([{ type: 'resync' }]);
  streams[0]?.write(event('kubelet', {}));
  streams[0]?.write(event('other', { ...mine, 'lifepod.io/instance': 'other' }));
  streams[0]?.write(event('own', mine));
  expect(await receivedCount(2)).toEqual([{ type: 'resync' }, { type: 'changed', podUid: 'own' }]);
});

test('an event stream that was cut is reopened, and a resync is sent', async () => {
  await connectTo('cri-o');
  await receivedCount(1);
  streams[0]?.end();
  expect(await receivedCount(2)).toEqual([{ type: 'resync' }, { type: 'resync' }]);
  streams[1]?.write(event('own', mine));
  expect((await receivedCount(3))[2]).toEqual({ type: 'changed', podUid: 'own' });
});

test('shims are watched from the cut of an event stream until no event can be missed any more', async () => {
  const calls: string[] = [];
  const shimExits: ShimExits = {
    watch: async () => calls.push('watch'),
    unwatch: () => void calls.push(`unwatch before ${received.length + 1}`),
    exitOf: () => undefined,
    keepOnly: () => undefined,
  };
  await connectTo('containerd', shimExits);
  await receivedCount(1);
  subscriptions.shift()?.end();
  await receivedCount(2);
  expect(calls).toEqual(['unwatch before 1', 'watch', 'unwatch before 2']);
});

/** Sends the first subscriber an event about the task of the container `id`, which belongs to the Pod with the UID `id`. */
function sendTaskEvent(id: string, topic: string, message: string, content: object = {}): void {
  const codec = connect('unix:///nothing');
  const value = codec.encode(`containerd.services.events.v1.${message}`, { containerId: id, id, ...content });
  codec.close();
  subscriptions[0]?.write({ namespace: 'k8s.io', topic, event: { typeUrl: '', value } });
}
const sendExit = (id: string, exitStatus: number): void => sendTaskEvent(id, '/tasks/exit', 'TaskExit', { exitStatus });
async function changedPods(count: number): Promise<string[]> {
  const events = await receivedCount(1 + count);
  return events.flatMap((each) => (each.type === 'changed' ? [each.podUid] : []));
}
async function connectWithContainers(...ids: string[]): Promise<void> {
  listed = ids.map((id) => ({ id, labels: { ...mine, [POD_UID_LABEL]: id } }));
  await connectTo('containerd');
  await receivedCount(1);
}

test('an exit by SIGKILL is reported only once the report that memory ran out would have been sent', async () => {
  await connectWithContainers('killed', 'other');
  sendExit('killed', 137);
  sendExit('other', 1);
  expect(await changedPods(1)).toEqual(['other']);
  sendTaskEvent('killed', '/tasks/oom', 'TaskOOM');
  expect(await changedPods(2)).toEqual(['other', 'killed']);
  sendTaskEvent('killed', '/tasks/delete', 'TaskDelete');
  expect(await changedPods(3)).toEqual(['other', 'killed', 'killed']);
});

test('an exit by SIGKILL is reported at once after the report that memory ran out', async () => {
  await connectWithContainers('killed', 'other');
  sendTaskEvent('killed', '/tasks/oom', 'TaskOOM');
  sendExit('killed', 137);
  sendExit('other', 1);
  expect(await changedPods(3)).toEqual(['killed', 'killed', 'other']);
});

test('an exit by SIGKILL is reported after a second without the deletion of the task', async () => {
  await connectWithContainers('killed');
  sendExit('killed', 137);
  expect(await changedPods(1)).toEqual(['killed']);
});
