/** The containerd cannot run Pods yet: it has no CNI configuration, as in Debian's package, or no sandbox image. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect, test } from 'vitest';
import {
  type Containerd,
  type ContainerdOptions,
  startContainerd,
} from '../../../src/runtime/containerd/containerd.ts';
import { connectRuntime } from '../../../src/runtime/cri/cri-runtime.ts';
import { loadImageArchives } from '../../../src/runtime/images/load.ts';
import { makePauseArchive } from '../../../src/runtime/images/local-images.ts';
import { loadImages, quiet, type Scratch, scratch } from '../../integration/containerd-fixture.ts';
import { watchLeaks } from '../../support/leaks.ts';
import { freeNetwork, LAUNCHER, launch, scratchFolder } from '../../support/lifepod.ts';
import { startRegistry } from '../../support/registry.ts';

interface Machine {
  where: Scratch;
  containerd: Containerd;
  dataDir: string;
  /**
   * Runs `lifepod up --detach`, and passes each line of stderr to `seen`, with a function that interrupts the command with SIGINT. Resolves
   * with the exit code and all lines.
   */
  up(seen?: (line: string, interrupt: () => void) => unknown): Promise<{ code: number; lines: string[] }>;
}

async function withMachine(
  change: (where: Scratch) => Partial<ContainerdOptions>,
  run: (machine: Machine) => Promise<void>,
): Promise<void> {
  const where = scratch();
  const own = scratchFolder();
  let containerd: Containerd | undefined;
  try {
    containerd = await startContainerd({ ...where.options, ...change(where) });
    const { endpoint } = containerd;
    const up: Machine['up'] = async (seen) => {
      const options = await freeNetwork();
      const args = ['up', '--detach', '--data-dir', own.path, ...options, '--container-runtime-endpoint', endpoint];
      const child = spawn(LAUNCHER, args, { stdio: ['ignore', 'ignore', 'pipe'] });
      const ended = once(child, 'exit');
      const lines: string[] = [];
      for await (const line of createInterface({ input: child.stderr })) {
        lines.push(line);
        await seen?.(line, () => child.kill('SIGINT'));
      }
      const [code] = await ended;
      return { code, lines };
    };
    await run({ where, containerd, dataDir: own.path, up });
  } finally {
    await launch(['down', '--data-dir', own.path]);
    await own.remove();
    await containerd?.shutdown();
    await where.remove();
  }
}

async function pauseArchive({ dataDir }: Scratch, reference: string): Promise<string> {
  const archive = join(dataDir, 'sandbox-image.tar');
  await makePauseArchive(archive, { reference });
  return archive;
}

async function sandboxesRemoved({ containerd, dataDir, where }: Machine): Promise<void> {
  const namespaceLabels = { 'lifepod.io/instance': dataDir };
  const { endpoint } = containerd;
  const runtime = await connectRuntime({ endpoint, log: quiet, timers: where.options.timers, namespaceLabels });
  const end = new AbortController();
  try {
    await new Promise<void>((resolve, reject) => {
      const look = (): void => {
        runtime.observeAll(AbortSignal.timeout(30_000)).then((pods) => pods.size === 0 && resolve(), reject);
      };
      runtime.events(look, end.signal).catch(reject);
    });
  } finally {
    end.abort();
    await runtime.close();
  }
}

const READY = expect.stringMatching(/^lifepod .* is ready after /);

test('without a CNI configuration, lifepod up waits and reports what to do, and is ready once a configuration exists', async () => {
  let cni = '';
  let configuration = Buffer.alloc(0);
  const change = ({ options }: Scratch): Partial<ContainerdOptions> => {
    cni = join(options.cniConfDir, '10-test.conflist');
    configuration = readFileSync(cni);
    rmSync(cni);
    return {};
  };
  await withMachine(change, async ({ where, containerd, up }) => {
    await loadImages(where, containerd.endpoint);
    const seen = (line: string): void => {
      if (line.startsWith('lifepod is waiting')) writeFileSync(cni, configuration);
    };
    expect(await up(seen)).toEqual({
      code: 0,
      lines: [
        expect.stringMatching(
          /^lifepod is waiting for the node to be ready: .*cni plugin not initialized; write a CNI /,
        ),
        READY,
      ],
    });
  });
});

test('an interrupted first start leaves nothing behind, and lifepod down has nothing to do', async () => {
  const change = ({ options }: Scratch): Partial<ContainerdOptions> => {
    rmSync(join(options.cniConfDir, '10-test.conflist'));
    return {};
  };
  await withMachine(change, async ({ dataDir, up }) => {
    expect((await up((line, interrupt) => line.startsWith('lifepod is waiting') && interrupt())).code).toBe(130);
    expect(await (await watchLeaks(dataDir)).left()).toEqual([]);
    const result = await launch(['down', '--data-dir', dataDir]);
    expect(result).toMatchObject({ code: 0, stdout: `lifepod has never run in ${dataDir}: nothing to do\n` });
  });
});

test('without its sandbox image, lifepod up waits and reports how to load the image, and is ready once the image is loaded', async () => {
  // No server listens on this port.
  const sandboxImage = '127.0.0.1:1/pause:3.10';
  await withMachine(
    () => ({ sandboxImage }),
    async (machine) => {
      const { where, containerd, up } = machine;
      const load = async (line: string): Promise<void> => {
        if (!line.startsWith('lifepod is waiting')) return;
        const archive = await pauseArchive(where, sandboxImage);
        const target = { endpoint: containerd.endpoint, timers: where.options.timers };
        await loadImageArchives(target, [archive], AbortSignal.timeout(60_000));
      };
      expect(await up(load)).toEqual({
        code: 0,
        lines: [
          expect.stringMatching(
            /^lifepod is waiting for the node to be ready: the container runtime has no sandbox image, and cannot pull it: 127\.0\.0\.1:1\/pause:3\.10: .*connection refused; load the image /,
          ),
          READY,
        ],
      });
      await sandboxesRemoved(machine);
    },
  );
});

test('lifepod up pulls the sandbox image from its registry, and removes the sandbox that it starts as a check', async () => {
  const folder = scratchFolder();
  const registry = await startRegistry(join(folder.path, 'registry'));
  try {
    await withMachine(
      () => ({ sandboxImage: `${registry.host}/pause:3.10` }),
      async (machine) => {
        await registry.push(await pauseArchive(machine.where, 'example.com/pause:3.10'), 'pause:3.10');
        expect(await machine.up()).toEqual({ code: 0, lines: [READY] });
        await sandboxesRemoved(machine);
      },
    );
  } finally {
    await registry.stop();
    await folder.remove();
  }
});
