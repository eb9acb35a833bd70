/** Creates Pods through the API, or with only the CRI calls that the Pods require (the floor). */

import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { Pod } from '../src/api/generated/types.ts';
import { PODS } from '../src/api/resources.ts';
import type { Client } from '../src/client/client.ts';
import { nodePlatform } from '../src/platform/node-js.ts';
import type { WatchEvent } from '../src/ports/backend.ts';
import { containerdPaths } from '../src/runtime/containerd/paths.ts';
import { connectRuntime } from '../src/runtime/cri/cri-runtime.ts';
import type { ContainerConfig, ContainerRuntime, SandboxConfig } from '../src/runtime/runtime.ts';
import { type BenchEngine, BUSYBOX } from './engine.ts';

export const APP = ['sh', '-c', 'trap "exit 0" TERM; sleep 3600 & wait'];
export const BRIEF = ['true'];

/**
 * The instance label of this connection differs from that of the engine, so that the engine ignores its Pods. They are removed before the
 * engine stops.
 */
export async function connectFloor(engine: BenchEngine): Promise<ContainerRuntime> {
  const runtime = await connectRuntime({
    endpoint: `unix://${containerdPaths(engine.dataDir).socket}`,
    ...nodePlatform('warn'),
    namespaceLabels: { 'lifepod.io/instance': 'bench-floor' },
  });
  engine.beforeStop(async () => {
    const { signal } = new AbortController();
    for (const { sandboxes } of (await runtime.observeAll(signal)).values())
      for (const { id } of sandboxes) {
        await runtime.stopSandbox(id, signal);
        await runtime.removeSandbox(id, signal);
      }
    await runtime.close();
  });
  return runtime;
}

export interface FloorPod {
  uid: string;
  sandbox: SandboxConfig;
  container(name: string, command: string[]): ContainerConfig;
}

export function floorPod(name: string, logs: string): FloorPod {
  const pod = { uid: randomUUID(), namespace: 'bench', name };
  return {
    uid: pod.uid,
    sandbox: { pod, attempt: 0, hostname: name, logDirectory: join(logs, pod.uid), labels: {}, annotations: {} },
    container: (container, command) => ({
      pod,
      name: container,
      kind: 'app',
      attempt: 0,
      imageId: BUSYBOX,
      imageName: BUSYBOX,
      command,
      env: [],
      mounts: [],
      logPath: `${container}.log`,
      annotations: {},
      resources: {},
      security: {},
    }),
  };
}

/** The returned function resolves when the container with the ID has exited. It observes the Pod again at each event of the runtime. */
export function exitsOf(runtime: ContainerRuntime, podUid: string, signal: AbortSignal): (id: string) => Promise<void> {
  let wake = (): void => undefined;
  void runtime.events(() => wake(), signal).catch(() => undefined);
  return async (id) => {
    for (;;) {
      const changed = new Promise<void>((resolve) => {
        wake = resolve;
      });
      const { containers } = await runtime.observe(podUid, signal);
      if (containers.some((run) => run.id === id && run.state === 'exited')) return;
      await changed;
    }
  };
}

export const isReady = (pod: Pod): boolean =>
  pod.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false;

export async function watchPod(client: Client, name: string) {
  const ends = new AbortController();
  const seen: WatchEvent<Pod>[] = [];
  let wake = (): void => undefined;
  const pods = client.resource<Pod>(PODS);
  const options = { namespace: 'default', fieldSelector: `metadata.name=${name}` };
  const { metadata } = await pods.list(options);
  void pods
    .watch(
      { ...options, resourceVersion: metadata.resourceVersion },
      (event) => {
        seen.push(event);
        wake();
      },
      ends.signal,
    )
    .catch((error: unknown) => {
      if (!ends.signal.aborted) throw error;
    });
  return {
    async until(holds: (event: WatchEvent<Pod>) => boolean): Promise<void> {
      for (;;) {
        for (let event = seen.shift(); event !== undefined; event = seen.shift()) if (holds(event)) return;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
    stop: () => ends.abort(),
  };
}

export async function createAndAwaitReady(client: Client, wanted: readonly Pod[]): Promise<void> {
  const pods = client.resource<Pod>(PODS);
  const ends = new AbortController();
  const ready = new Set<string>();
  const { promise: allReady, resolve, reject } = Promise.withResolvers<void>();
  const { metadata } = await pods.list({ namespace: 'default' });
  void pods
    .watch(
      { namespace: 'default', resourceVersion: metadata.resourceVersion },
      ({ type, object }) => {
        if (type === 'MODIFIED' && isReady(object)) ready.add(object.metadata.name);
        if (ready.size === wanted.length) resolve();
      },
      ends.signal,
    )
    .catch(reject);
  for (const pod of wanted) await pods.create(pod);
  await allReady;
  ends.abort();
}
