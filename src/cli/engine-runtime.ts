/** The engine's container runtime: a private containerd, or the machine's; with the image of sandboxes in it. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { networkNames } from '../network/bridge.ts';
import { UserError } from '../platform/files.ts';
import type { Platform } from '../platform/platform.ts';
import { type Containerd, startContainerd } from '../runtime/containerd/containerd.ts';
import { connectRuntime } from '../runtime/cri/cri-runtime.ts';
import { loadImageArchives } from '../runtime/images/load.ts';
import { makePauseArchive } from '../runtime/images/local-images.ts';
import type { ContainerRuntime, ContainerStreams, RuntimeEvent } from '../runtime/runtime.ts';
import { findCniFolder } from './machine.ts';
import type { Settings } from './settings.ts';

/** Made of catatonit on this machine, so that no registry is needed. */
const SANDBOX_IMAGE = 'localhost/lifepod/pause:1';

export interface EngineRuntime {
  runtime: ContainerRuntime & ContainerStreams;
  /** containerd */
  name: string;
  /** Called when the private containerd has ended, or is back. */
  onChange(listener: () => void): void;
}

/** `closers` gets what ends it; containers go on. */
export async function startRuntime(
  settings: Settings,
  platform: Platform,
  closers: AsyncDisposableStack,
  signal: AbortSignal,
): Promise<EngineRuntime> {
  const { dataDir, containerRuntimeEndpoint } = settings;
  const containerd =
    containerRuntimeEndpoint === undefined ? await startPrivate(dataDir, platform, closers) : undefined;
  const endpoint = containerRuntimeEndpoint ?? containerd?.endpoint ?? '';
  const runtime = await connectOwnRuntime(endpoint, dataDir, platform);
  closers.defer(() => runtime.close());
  if (containerd !== undefined) await ensureSandboxImage(runtime, endpoint, dataDir, platform, signal);
  const { name } = await runtime.version(signal);
  return {
    runtime,
    name,
    onChange(listener) {
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

/** Shows only what the engine of the data folder made: several engines may use the machine's runtime. */
export function connectOwnRuntime(
  endpoint: string,
  dataDir: string,
  platform: Platform,
): Promise<EngineRuntime['runtime']> {
  const namespaceLabels = { 'lifepod.io/instance': dataDir };
  return connectRuntime({ endpoint, ...platform, namespaceLabels }).catch((error: Error) => {
    throw new UserError(`the container runtime at ${endpoint} does not answer: ${error.message}`);
  });
}

async function startPrivate(dataDir: string, platform: Platform, closers: AsyncDisposableStack): Promise<Containerd> {
  const containerd = await startContainerd({
    dataDir,
    ...platform,
    sandboxImage: SANDBOX_IMAGE,
    cniConfDir: networkNames({ dataDir, instance: dataDir }).cniConfigDirectory,
    cniBinDir: findCniFolder() ?? '',
  });
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
