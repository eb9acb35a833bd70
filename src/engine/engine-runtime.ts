/** Starts a private containerd and loads its sandbox image, or connects to the machine's own container runtime. */
import { rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { networkNames } from '../network/pod-network/names.ts';
import { notReadyWithoutSandboxImage } from '../node/images/sandbox-image.ts';
import { UserError } from '../platform/files.ts';
import type { Metrics } from '../platform/metrics.ts';
import { lowerOomScore, SHIM_OOM_SCORE } from '../platform/oom-score.ts';
import type { Platform, Timers } from '../platform/platform.ts';
import { rootCommand, rootProgram } from '../platform/programs/typed-program.ts';
import { type Containerd, startContainerd } from '../runtime/containerd/containerd.ts';
import { containerdPaths } from '../runtime/containerd/paths.ts';
import { findShims } from '../runtime/containerd/process-table.ts';
import { createShimExits, type ShimExits } from '../runtime/containerd/shim-exits.ts';
import { type Connection, connect, hasCode, runtimeInitialized } from '../runtime/cri/connection.ts';
import { type CriRuntime, connectRuntime, type RuntimeOptions } from '../runtime/cri/cri-runtime.ts';
import type { Labels } from '../runtime/cri/labels.ts';
import { type RuntimeConfig, readRuntimeConfig } from '../runtime/cri/runtime-config.ts';
import { shortCallError } from '../runtime/error-text.ts';
import { deleteLeftLeases } from '../runtime/images/failed-import.ts';
import { loadImageArchives } from '../runtime/images/load.ts';
import { makePauseArchive } from '../runtime/images/local-images.ts';
import { deleteShortNames } from '../runtime/images/removal.ts';
import type { ContainerRuntime, PodObservation, RuntimeEvent } from '../runtime/runtime.ts';
import { podsInSilentRuntime } from './leftovers.ts';
import { findCniFolder } from './machine-checks.ts';
import type { Waiting } from './node-ready.ts';
import { startRuntimeHint } from './options/runtime-endpoint.ts';
import { DEFAULT_DATA_DIR, type Settings } from './settings.ts';

/** Built from this machine's catatonit, so that no registry is needed. */
export const SANDBOX_IMAGE = 'localhost/lifepod/pause:1';

export interface EngineRuntime {
  runtime: CriRuntime;
  name: string;
  /** Undefined if the runtime does not report it. */
  cgroupDriver: RuntimeConfig['cgroupDriver'];
  /** The references of the images that sandboxes use; empty if they are not known. Garbage collection keeps these images. */
  sandboxImages: string[];
  /**
   * Calls `listener` when the private containerd exits unexpectedly, after each connection to the events of the runtime, and, with the
   * machine's own runtime, when a trial of its sandbox image has ended.
   */
  onChange(listener: () => void): void;
}

/** Adds functions to `closers` that close the connection and stop the private containerd; containers keep running. */
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
  const runtime = await connectOwnRuntime(endpoint, dataDir, platform, { metrics, shimExits }, () =>
    otherRuntime(settings),
  );
  closers.defer(() => runtime.close());
  if (containerd !== undefined) {
    await ensureSandboxImage(runtime, endpoint, dataDir, platform, signal);
    await completeNames(endpoint, platform, signal);
  }
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
    runtime,
    name,
    cgroupDriver,
    sandboxImages: image === undefined ? [] : [image],
    onChange(listener) {
      listeners.push(listener);
      containerd?.onExit(listener);
      const onEvent = (event: RuntimeEvent): void => {
        if (event.type === 'resync') listener();
      };
      runtime.events(onEvent, signal).catch((error: unknown) => {
        platform.log.error('the events of the runtime ended', { error: String(error) });
      });
    },
  };
}

/**
 * Resolves with what the user can do if the machine's runtime does not answer, instead of starting it; undefined with a private containerd,
 * and if Pods of the data folder may run in the runtime, because a start with another one is then refused (start/runtime-change.ts).
 */
export const otherRuntime = async ({
  dataDir,
  containerRuntimeEndpoint,
}: Pick<Settings, 'dataDir' | 'containerRuntimeEndpoint'>): Promise<string | undefined> =>
  containerRuntimeEndpoint === undefined || (await podsInSilentRuntime(dataDir)) !== 0
    ? undefined
    : withoutRuntime(dataDir);

const withoutRuntime = (dataDir: string): string => {
  const words = "up --container-runtime-endpoint ''";
  const command = dataDir === DEFAULT_DATA_DIR ? `${rootProgram()} ${words}` : rootCommand(words, dataDir);
  return `${command} uses a private containerd instead`;
};

export const instanceLabels = (dataDir: string): Labels => ({ 'lifepod.io/instance': dataDir });

/**
 * The connection shows only sandboxes and containers that the engine of the data folder created, because several engines may share a
 * runtime. Rejects with a UserError if the runtime does not answer or does not offer CRI v1. `otherwise` resolves with what the user
 * can do instead of starting the runtime.
 */
export function connectOwnRuntime(
  endpoint: string,
  dataDir: string,
  platform: Platform,
  options: Pick<RuntimeOptions, 'metrics' | 'shimExits'> = {},
  otherwise?: () => Promise<string | undefined>,
): Promise<EngineRuntime['runtime']> {
  const namespaceLabels = instanceLabels(dataDir);
  return connectRuntime({ endpoint, ...platform, namespaceLabels, ...options }).catch(async (error: Error) => {
    const instead = await otherwise?.();
    throw new UserError(
      hasCode(error, 'Unimplemented')
        ? `the container runtime at ${endpoint} does not offer CRI v1: remove "cri" from disabled_plugins in its configuration (containerd: /etc/containerd/config.toml), and restart it`
        : `the container runtime at ${endpoint} does not answer: ${shortCallError(error.message)}; ${startRuntimeHint(endpoint)}${instead === undefined ? '' : `; ${instead}`}`,
    );
  });
}

/** Resolves with the Pods of the engine in the machine's runtime, whether or not they run; undefined if the runtime does not answer. */
export async function podsInRuntime(
  endpoint: string,
  dataDir: string,
  platform: Platform,
): Promise<PodObservation[] | undefined> {
  try {
    const runtime = await connectOwnRuntime(endpoint, dataDir, platform);
    try {
      return [...(await runtime.observeAll(new AbortController().signal)).values()];
    } finally {
      await runtime.close();
    }
  } catch {
    return undefined;
  }
}

/** How long to wait until systemd has restarted the machine's containerd. Debian's unit restarts it after 5 s. */
const RUNTIME_BACK_MILLIS = 30_000;
/** If the runtime does not answer within this time, the engine reports that it is waiting for the runtime. */
const ANSWER_MILLIS = 500;

/**
 * Watches the shims of the machine's containerd, so that the engine notices exits of containers while containerd is down. If there are
 * shims, containers may be running, so this function waits until containerd answers. The shims are found in the folder of containerd's
 * socket, where containerd has its state by default. Another runtime has no shims there.
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
    const enough = AbortSignal.any([signal, AbortSignal.timeout(RUNTIME_BACK_MILLIS)]);
    const late = platform.timers.at(platform.timers.now() + ANSWER_MILLIS, () => {
      platform.log.warn('the container runtime does not answer; waiting for it', { endpoint });
      waiting(`the container runtime at ${endpoint} does not answer; ${startRuntimeHint(endpoint)}`);
    });
    // If containerd does not answer in time, connectOwnRuntime() fails later and reports the error.
    await runtimeAnswers(endpoint, platform.timers, enough);
    late.cancel();
    signal.throwIfAborted();
  }
  return shimExits;
}

/** Resolves when the runtime at `endpoint` answers, or when `signal` aborts; never rejects. */
export async function runtimeAnswers(endpoint: string, timers: Timers, signal: AbortSignal): Promise<void> {
  const connection = connect(endpoint);
  await runtimeInitialized(connection, timers, signal).catch(() => undefined);
  connection.close();
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
  // An earlier engine may have started its shims with a higher OOM score. New shims derive their score from the score of containerd, which
  // inherits the score of the engine.
  for (const pid of findShims(containerdPaths(dataDir))) lowerOomScore(pid, SHIM_OOM_SCORE);
  const containerd = await startContainerd(options, signal);
  closers.defer(() => containerd.stop());
  // Nothing loads or pulls an image yet, so all leases that exist are left over.
  await tidy(containerd.endpoint, 'remove the content of interrupted loads of images', platform, signal, (connection) =>
    deleteLeftLeases(connection, signal),
  );
  return containerd;
}

/**
 * Replaces short names of images, such as web:1, by complete ones. Earlier versions of lifepod assigned such names, which CRI shows but
 * cannot find or remove. Only logs errors, for example about a full disk, because the engine can run with these names.
 */
export const completeNames = (
  endpoint: string,
  platform: Pick<Platform, 'timers' | 'log'>,
  signal: AbortSignal,
): Promise<void> =>
  tidy(endpoint, 'complete the short names of images', platform, signal, (connection) =>
    deleteShortNames(connection, 'all', platform.timers, signal),
  );

/** Calls `act`, and logs its error. Rejects with the error only if `signal` has aborted. */
async function tidy(
  endpoint: string,
  what: string,
  { log }: Pick<Platform, 'log'>,
  signal: AbortSignal,
  act: (connection: Connection) => Promise<void>,
): Promise<void> {
  const connection = connect(endpoint);
  try {
    await act(connection);
  } catch (error) {
    if (signal.aborted) throw error;
    log.warn(`cannot ${what}; the next start tries again`, { error: String(error) });
  } finally {
    connection.close();
  }
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
