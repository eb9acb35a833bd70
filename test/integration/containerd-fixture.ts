/** Starts a real, private containerd in a scratch folder, with a bridge network of its own and a busybox image. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemTimers } from '../../src/platform/node-js.ts';
import type { Log } from '../../src/platform/platform.ts';
import { type Containerd, type ContainerdOptions, startContainerd } from '../../src/runtime/containerd/containerd.ts';
import { connectRuntime } from '../../src/runtime/cri/cri-runtime.ts';
import { loadImageArchives } from '../../src/runtime/images/load.ts';
import { makeBusyboxArchive, makePauseArchive } from '../../src/runtime/images/local-images.ts';
import type { ContainerRuntime, ContainerStreams } from '../../src/runtime/runtime.ts';
import { scratchFolder } from '../support/lifepod.ts';

export const BUSYBOX = 'docker.io/library/busybox:1.28';
const PAUSE = 'localhost/lifepod/pause:test';

export const quiet: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => quiet,
};

let serial = 0;

export interface Scratch {
  dataDir: string;
  logDirectory: string;
  bridge: string;
  /** Containers can reach this address of the bridge. */
  gateway: string;
  options: ContainerdOptions;
  /** containerd must have been shut down before. */
  remove(): Promise<void>;
}

/**
 * Creates a folder with the configuration of a bridge network that no other process of this machine uses. `nested` is the path of the data
 * folder within the folder.
 */
export function scratch(nested = ''): Scratch {
  const number = process.pid * 4 + serial++;
  const bridge = `lpt${number.toString(36)}`;
  const { path: folder, remove } = scratchFolder(bridge);
  const dataDir = join(folder, nested);
  const cniConfDir = join(folder, 'cni');
  const logDirectory = join(folder, 'logs');
  for (const each of [dataDir, cniConfDir, logDirectory]) mkdirSync(each, { recursive: true });
  const network = `10.${192 + ((number >> 8) % 48)}.${number & 255}`;
  const plugin = {
    type: 'bridge',
    bridge,
    isGateway: true,
    ipam: {
      type: 'host-local',
      ranges: [[{ subnet: `${network}.0/24` }]],
      routes: [{ dst: '0.0.0.0/0' }],
      dataDir: join(folder, 'ipam'),
    },
  };
  writeFileSync(
    join(cniConfDir, '10-test.conflist'),
    JSON.stringify({ cniVersion: '1.0.0', name: bridge, plugins: [plugin] }),
  );
  return {
    dataDir,
    logDirectory,
    bridge,
    gateway: `${network}.1`,
    options: {
      dataDir,
      log: quiet,
      timers: systemTimers(),
      sandboxImage: PAUSE,
      cniConfDir,
      cniBinDir: '/usr/lib/cni',
    },
    remove,
  };
}

export async function loadImages(where: Scratch, endpoint: string): Promise<void> {
  const [busybox, pause] = [join(where.dataDir, 'busybox.tar'), join(where.dataDir, 'pause.tar')];
  await makeBusyboxArchive(busybox, { reference: BUSYBOX });
  await makePauseArchive(pause, { reference: PAUSE });
  await loadImageArchives({ endpoint, timers: where.options.timers }, [busybox, pause], AbortSignal.timeout(60_000));
}

export interface RealRuntime {
  where: Scratch;
  containerd: Containerd;
  runtime: ContainerRuntime & ContainerStreams;
  close(): Promise<void>;
}

export async function startRealRuntime(nested = ''): Promise<RealRuntime> {
  const where = scratch(nested);
  let containerd: Containerd | undefined;
  try {
    containerd = await startContainerd(where.options);
    await loadImages(where, containerd.endpoint);
    const runtime = await connectRuntime({ endpoint: containerd.endpoint, log: quiet, timers: where.options.timers });
    const { shutdown } = containerd;
    return {
      where,
      containerd,
      runtime,
      close: async () => {
        await runtime.close();
        await shutdown();
        await where.remove();
      },
    };
  } catch (error) {
    await containerd?.shutdown();
    await where.remove();
    throw error;
  }
}
