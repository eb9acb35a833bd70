/** CRI's own event stream, against a server of it: the containerd of Debian 12 does not have the call. */
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
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemTimers } from '../../platform/node.ts';
import type { Log } from '../../platform/platform.ts';
import type { ContainerRuntime, RuntimeEvent } from '../runtime.ts';
import { connectRuntime } from './cri-runtime.ts';

const log: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => log,
};
const definition = loadSync(fileURLToPath(new URL('cri.proto', import.meta.url)));

type Stream = ServerWritableStream<object, object>;

let folder: string;
let server: Server;
let streams: Stream[];
let told: RuntimeEvent[];
let wake: () => void;
let runtime: ContainerRuntime;
let end: AbortController;
let ended: Promise<void>;

/** Resolves once so many events were told. */
async function toldCount(count: number): Promise<RuntimeEvent[]> {
  while (told.length < count) {
    await new Promise<void>((resolve) => {
      wake = resolve;
    });
  }
  return told;
}

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'lifepod-cri-events-'));
  streams = [];
  told = [];
  wake = () => undefined;
  server = new Server();
  const calls: UntypedServiceImplementation = {
    Version: (_call: unknown, answer: (error: null, response: object) => void) =>
      answer(null, { runtimeName: 'test', runtimeVersion: '1', runtimeApiVersion: 'v1' }),
    Status: (_call: unknown, answer: (error: null, response: object) => void) => answer(null, {}),
    GetContainerEvents: (stream: Stream) => void streams.push(stream),
  };
  server.addService(definition['runtime.v1.RuntimeService'] as unknown as ServiceDefinition, calls);
  const endpoint = `unix://${join(folder, 'cri.sock')}`;
  await new Promise<void>((resolve, reject) =>
    server.bindAsync(endpoint, ServerCredentials.createInsecure(), (error) => (error ? reject(error) : resolve())),
  );
  runtime = await connectRuntime({
    endpoint,
    log,
    timers: systemTimers(),
    namespaceLabels: { 'lifepod.io/instance': 'mine' },
  });
  end = new AbortController();
  ended = runtime.events((event) => {
    told.push(event);
    wake();
  }, end.signal);
});
afterEach(async () => {
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

test('changes of own Pods are told, of others not', async () => {
  expect(await toldCount(1)).toEqual([{ type: 'resync' }]);
  streams[0]?.write(event('kubelet', {}));
  streams[0]?.write(event('other', { ...mine, 'lifepod.io/instance': 'other' }));
  streams[0]?.write(event('own', mine));
  expect(await toldCount(2)).toEqual([{ type: 'resync' }, { type: 'changed', podUid: 'own' }]);
});

test('a stream that is cut is opened anew, with a resync', async () => {
  await toldCount(1);
  streams[0]?.end();
  expect(await toldCount(2)).toEqual([{ type: 'resync' }, { type: 'resync' }]);
  streams[1]?.write(event('own', mine));
  expect((await toldCount(3))[2]).toEqual({ type: 'changed', podUid: 'own' });
});
