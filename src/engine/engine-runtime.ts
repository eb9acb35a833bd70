/** The engine's container runtime: a private containerd, or the machine's; with the image of sandboxes in it. */
import { rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { networkNames } from '../network/bridge.ts';
import { notReadyWithoutSandboxImage } from '../node/images/sandbox-image.ts';
import { UserError } from '../platform/files.ts';
import type { Metrics } from '../platform/metrics.ts';
import { lowerOomScore, SHIM_OOM_SCORE } from '../platform/oom-score.ts';
import type { Platform } from '../platform/platform.ts';
import { type Containerd, startContainerd } from '../runtime/containerd/containerd.ts';
import { containerdPaths } from '../runtime/containerd/paths.ts';
import { findShims } from '../runtime/containerd/process-table.ts';
import { createShimExits, type ShimExits } from '../runtime/containerd/shim-exits.ts';
import { connect, hasCode, runtimeInitialized } from '../runtime/cri/connection.ts';
import { connectRuntime, type RuntimeOptions } from '../runtime/cri/cri-runtime.ts';
import type { Labels } from '../runtime/cri/labels.ts';
import { type RuntimeConfig, readRuntimeConfig } from '../runtime/cri/runtime-config.ts';
import { loadImageArchives } from '../runtime/images/load.ts';
import { makePauseArchive } from '../runtime/images/local-images.ts';
import type { ContainerRuntime, ContainerStreams, RuntimeEvent, RuntimeUsage } from '../runtime/runtime.ts';
import { findCniFolder } from './machine-checks.ts';
import type { Waiting } from './node-ready.ts';
import type { Settings } from './settings.ts';

/** Made of catatonit on this machine, so that no registry is needed. */
export const SANDBOX_IMAGE = 'localhost/lifepod/pause:1';

export interface EngineRuntime {
  runtime: ContainerRuntime & ContainerStreams & RuntimeUsage;
  /** containerd */
  name: string;
  /** How it makes control groups; undefined: it does not tell. */
  cgroupDriver: RuntimeConfig['cgroupDriver'];
  /** Of the sandboxes that it makes: their images stay. */
  sandboxImages: string[];
  /** Called when the private containerd has ended or is back, and when a machine's runtime may have got its sandbox image. */
  onChange(listener: () => void): void;
}

/** `closers` gets what ends it; containers go on. */
export async function startRuntime(
  settings: Settings,
  platform: Platform,
  closers: AsyncDisposableStack,
  signal: AbortSignal,
  { metrics, waiting }: { metrics: Metrics; waiting: Waiting },
): Promise<EngineRuntime> {
  const { dataDir, containerRuntimeEndpoint } = settings;
  const containerd =
    containerRuntimeEndpoint === undefined ? await startPrivate(settings, platform, closers, signal) : undefined;
  const endpoint = containerRuntimeEndpoint ?? containerd?.endpoint ?? '';
  const shimExits = containerd?.shimExits ?? (await watchShims(endpoint, platform, closers, signal, waiting));
  const runtime = await connectOwnRuntime(endpoint, dataDir, platform, { metrics, shimExits });
  closers.defer(() => runtime.close());
  if (containerd !== undefined) await ensureSandboxImage(runtime, endpoint, dataDir, platform, signal);
  const { name } = await runtime.version(signal);
  const config: RuntimeConfig =
    containerd === undefined
      ? await readRuntimeConfig(endpoint, signal)
      : { cgroupDriver: 'cgroupfs', sandboxImage: SANDBOX_IMAGE };
  const { cgroupDriver, sandboxImage: image } = config;
  const listeners: (() => void)[] = [];
  const changed = (): void => listeners.forEach((listener) => void listener());
  const check = { runtime: { ...runtime }, image, cgroupDriver, timers: platform.timers, signal, changed };
  if (containerd === undefined) runtime.notReady = notReadyWithoutSandboxImage(check);
  return {
    ...{ runtime, name, cgroupDriver },
    sandboxImages: image === undefined ? [] : [image],
    onChange(listener) {
      listeners.push(listener);
      containerd?.onExit(listener);
      const tell = (event: RuntimeEvent): void => {
        if (event.type === 'resync') listener();
      };
      runtime.events(tell, signal).catch((error: unknown) => {
        platform.log.error('the events of the runtime ended', { error: String(error) });
      });
    },
  };
}

/** On all that an engine makes. */
export const instanceLabels = (dataDir: string): Labels => ({ 'lifepod.io/instance': dataDir });

/** Shows only what the engine of the data folder made: several engines may use the machine's runtime. */
export function connectOwnRuntime(
  endpoint: string,
  dataDir: string,
  platform: Platform,
  options: Pick<RuntimeOptions, 'metrics' | 'shimExits'> = {},
): Promise<EngineRuntime['runtime']> {
  const namespaceLabels = instanceLabels(dataDir);
  return connectRuntime({ endpoint, ...platform, namespaceLabels, ...options }).catch((error: Error) => {
    throw new UserError(
      hasCode(error, 'Unimplemented')
        ? `the container runtime at ${endpoint} offers no CRI v1: take "cri" out of disabled_plugins in its configuration (containerd: /etc/containerd/config.toml), and restart it`
        : `the container runtime at ${endpoint} does not answer: ${error.message}; start it`,
    );
  });
}

/** As long as systemd takes to start a containerd again: Debian's unit waits 5 s. */
const RUNTIME_BACK_MILLIS = 30_000;
const ANSWER_MILLIS = 500;

/**
 * Asks the shims of a machine's containerd how containers end while it is down. A containerd that is down while it has containers is
 * about to be started again: waits for it, so that no end is missed. Other runtimes have no such shims. containerd's state is taken to be
 * in the folder of its socket, as it is by default.
 */
async function watchShims(
  endpoint: string,
  platform: Platform,
  closers: AsyncDisposableStack,
  signal: AbortSignal,
  waiting: Waiting,
): Promise<ShimExits> {
  const socket = endpoint.replace(/^unix:\/\//, '');
  const shimExits = createShimExits({ state: dirname(socket), ...platform });
  closers.defer(() => shimExits.unwatch());
  if ((await shimExits.watch()) > 0) {
    const connection = connect(endpoint);
    const enough = AbortSignal.any([signal, AbortSignal.timeout(RUNTIME_BACK_MILLIS)]);
    const late = platform.timers.at(platform.timers.now() + ANSWER_MILLIS, () => {
      platform.log.warn('the container runtime does not answer; waiting for it', { endpoint });
      waiting(`the container runtime at ${endpoint} does not answer; start it`);
    });
    // Where it does not come back, who connects says so.
    await runtimeInitialized(connection, platform.timers, enough).catch(() => undefined);
    late.cancel();
    connection.close();
    signal.throwIfAborted();
  }
  return shimExits;
}

async function startPrivate(
  { dataDir, runtimeHandlers }: Settings,
  platform: Platform,
  closers: AsyncDisposableStack,
  signal: AbortSignal,
): Promise<Containerd> {
  const options = {
    dataDir,
    ...platform,
    sandboxImage: SANDBOX_IMAGE,
    cniConfDir: networkNames({ dataDir, instance: dataDir }).cniConfigDirectory,
    cniBinDir: findCniFolder() ?? '',
    runtimeHandlers,
  };
  // Those of an earlier engine have what it could give them; new ones inherit from containerd, and that from the engine.
  for (const pid of findShims(containerdPaths(dataDir))) lowerOomScore(pid, SHIM_OOM_SCORE);
  const containerd = await startContainerd(options, signal);
  closers.defer(() => containerd.stop());
  return containerd;
}

async function ensureSandboxImage(
  runtime: ContainerRuntime,
  endpoint: string,
  dataDir: string,
  platform: Platform,
  signal: AbortSignal,
): Promise<void> {
  if ((await runtime.imageStatus(SANDBOX_IMAGE, signal)) !== undefined) return;
  const archive = join(dataDir, 'pause.tar');
  try {
    await makePauseArchive(archive, { reference: SANDBOX_IMAGE });
    await loadImageArchives({ endpoint, timers: platform.timers }, [archive], signal);
  } finally {
    rmSync(archive, { force: true });
  }
}
