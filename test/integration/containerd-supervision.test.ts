import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, watch, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, describe, expect, test } from 'vitest';
import { runCommandOk } from '../../src/platform/processes.ts';
import { type Containerd, startContainerd } from '../../src/runtime/containerd/containerd.ts';
import { containerdPaths } from '../../src/runtime/containerd/paths.ts';
import { clearRunState } from '../../src/runtime/containerd/run-state.ts';
import type { ShimExits } from '../../src/runtime/containerd/shim-exits.ts';
import { findBundledShims } from '../../src/runtime/containerd/shims.ts';
import { connectRuntime } from '../../src/runtime/cri/cri-runtime.ts';
import type { ContainerRuntime, SandboxConfig } from '../../src/runtime/runtime.ts';
import { BUSYBOX, loadImages, quiet, type Scratch, scratch } from './containerd-fixture.ts';

const never = new AbortController().signal;
const cleanups: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

function newScratch(nested = ''): Scratch {
  const where = scratch(nested);
  cleanups.push(
    () => where.remove(),
    () => clearRunState(where.options),
  );
  return where;
}

async function start(where: Scratch): Promise<Containerd> {
  const containerd = await startContainerd(where.options);
  cleanups.push(() => containerd.shutdown());
  return containerd;
}

async function runtimeOf(
  where: Scratch,
  { endpoint, shimExits }: { endpoint: string; shimExits?: ShimExits },
): Promise<ContainerRuntime> {
  const runtime = await connectRuntime({ endpoint, log: quiet, timers: where.options.timers, shimExits });
  cleanups.push(() => runtime.close());
  return runtime;
}

async function runSleeper(where: Scratch, runtime: ContainerRuntime): Promise<{ sandbox: string; container: string }> {
  const config: SandboxConfig = {
    pod: { uid: 'uid-1', namespace: 'default', name: 'sleeper' },
    attempt: 0,
    hostname: 'sleeper',
    logDirectory: where.logDirectory,
    labels: {},
    annotations: {},
  };
  const sandbox = await runtime.runSandbox(config, never);
  const image = await runtime.imageStatus(BUSYBOX, never);
  const container = await runtime.createContainer(
    sandbox,
    config,
    {
      pod: config.pod,
      name: 'sleeper',
      kind: 'app',
      attempt: 0,
      imageId: image?.id ?? '',
      imageName: BUSYBOX,
      command: ['sleep', '100000'],
      env: [],
      mounts: [],
      logPath: 'sleeper.log',
      annotations: {},
      resources: {},
      security: {},
    },
    never,
  );
  await runtime.startContainer(container, never);
  return { sandbox, container };
}

/** Counts the resyncs from now on. Each call of next() consumes one resync, and waits for one if none is left. */
function resyncs(runtime: ContainerRuntime): { next(): Promise<void> } {
  const end = new AbortController();
  let seen = 0;
  let taken = 0;
  let wake = (): void => undefined;
  const ended = runtime.events((event) => {
    if (event.type !== 'resync') return;
    seen++;
    wake();
  }, end.signal);
  cleanups.push(() => {
    end.abort();
    return ended;
  });
  return {
    next: async () => {
      while (seen === taken) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      taken++;
    },
  };
}

/** A zombie, which its parent has not reaped yet, has no command line. */
const lives = (pid: number): boolean => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8') !== '';
  } catch {
    return false;
  }
};
const firstProcess = (where: Scratch, container: string): number =>
  Number(
    readFileSync(
      join(containerdPaths(where.dataDir).state, `io.containerd.runtime.v2.task/k8s.io/${container}/init.pid`),
    ),
  );
const shimSockets = (where: Scratch): string[] => [
  ...new Set(findBundledShims(containerdPaths(where.dataDir).state).map(({ socket }) => socket)),
];
const cgroupsOf = (container: string): string[] =>
  ['', ...readdirSync('/sys/fs/cgroup')]
    .map((controller) => join('/sys/fs/cgroup', controller, 'k8s.io', container))
    .filter((folder) => existsSync(folder));
const mountsUnder = (folder: string): string[] =>
  readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .filter((line) => line.includes(folder));
const processesNaming = (text: string): string[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .map((name) => {
      try {
        return readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ');
      } catch {
        return '';
      }
    })
    .filter((line) => line.includes(text));

test('aborting a start of containerd ends containerd, even if it hangs', async () => {
  const where = newScratch();
  const programs = join(where.dataDir, 'programs');
  mkdirSync(programs);
  const begun = join(programs, 'begun');
  const hanging = `#!/bin/sh\necho "$$" >${begun}.new\nmv ${begun}.new ${begun}\nexec sleep 600\n`;
  writeFileSync(join(programs, 'containerd'), hanging, { mode: 0o755 });
  const path = process.env['PATH'];
  cleanups.push(() => {
    process.env['PATH'] = path;
  });
  process.env['PATH'] = `${programs}:${path}`;
  const stopping = new AbortController();
  const watcher = watch(programs);
  const starting = startContainerd(where.options, stopping.signal);
  starting.catch(() => undefined);
  while (!existsSync(begun)) await once(watcher, 'change');
  watcher.close();
  stopping.abort(new Error('stopped by a test'));
  await expect(starting).rejects.toThrow('stopped by a test');
  expect(existsSync(`/proc/${readFileSync(begun, 'utf8').trim()}`)).toBe(false);
});

describe('a private containerd', () => {
  test('containerd listens on a socket that only its owner can use', async () => {
    const where = newScratch();
    const containerd = await start(where);
    expect(containerd.version).toMatch(/^\d+\.\d+/);
    const socket = containerd.endpoint.replace('unix://', '');
    expect(statSync(socket).mode & 0o777).toBe(0o600);
    expect(statSync(join(socket, '..')).mode & 0o777).toBe(0o700);
    expect(statSync(containerdPaths(where.dataDir).log).mode & 0o777).toBe(0o600);
  });

  test('containerd does not inherit secrets from the environment', async () => {
    process.env['LIFEPOD_TEST_SECRET'] = 'do-not-pass';
    cleanups.push(() => {
      delete process.env['LIFEPOD_TEST_SECRET'];
    });
    const containerd = await start(newScratch());
    expect(readFileSync(`/proc/${containerd.pid()}/environ`, 'utf8')).not.toContain('do-not-pass');
  });

  test('containerd works in a folder whose path is too long for a socket', async () => {
    const where = newScratch('long/'.repeat(30));
    const containerd = await start(where);
    expect(containerd.endpoint).toMatch(/^unix:\/\/\/run\/lifepod\/[0-9a-f]{16}\/containerd\.sock$/);
    const runtime = await runtimeOf(where, containerd);
    expect(await runtime.notReady(never)).toEqual([]);
    await containerd.shutdown();
    expect(existsSync(containerdPaths(where.dataDir).run)).toBe(false);
  });

  test('the start of a containerd that cannot run fails with an error that names its log', async () => {
    const where = newScratch();
    const paths = containerdPaths(where.dataDir);
    // containerd cannot create its root folder, because a file has this path.
    mkdirSync(paths.home, { recursive: true });
    writeFileSync(paths.root, '');
    await expect(startContainerd(where.options)).rejects.toThrow(
      /^containerd does not start: it ended with exit code 1; the end of its log .*containerd\.log: /,
    );
    expect(processesNaming(where.dataDir)).toEqual([]);
  });

  test('a killed containerd is restarted, and its container keeps running', async () => {
    const where = newScratch();
    const containerd = await start(where);
    await loadImages(where, containerd.endpoint);
    const runtime = await runtimeOf(where, containerd);
    const resync = resyncs(runtime);
    await resync.next();
    const { container } = await runSleeper(where, runtime);
    const before = await runtime.observe('uid-1', never);
    expect(before.containers).toMatchObject([{ id: container, state: 'running' }]);

    const exits: unknown[] = [];
    containerd.onExit((exit) => exits.push(exit));
    for (let round = 0; round < 2; round++) {
      const killed = containerd.pid() ?? 0;
      process.kill(killed, 'SIGKILL');
      // On a busy machine, the old connection may have delivered one more resync.
      do await resync.next();
      while (containerd.pid() === killed || containerd.pid() === undefined);
      expect(await runtime.observe('uid-1', never)).toEqual(before);
    }
    expect(exits).toEqual(Array(2).fill({ code: null, signal: 'SIGKILL' }));

    await runtime.stopContainer(container, 0, never);
    expect((await runtime.observe('uid-1', never)).containers).toMatchObject([{ state: 'exited', exitCode: 137 }]);
  });

  test('a new containerd sees a container that exited while none was running', async () => {
    const where = newScratch();
    const first = await start(where);
    await loadImages(where, first.endpoint);
    const { container } = await runSleeper(where, await runtimeOf(where, first));
    await first.stop();
    const sleeper = firstProcess(where, container);
    process.kill(sleeper, 'SIGKILL');
    const second = await start(where);
    expect(second.shimExits.exitOf(container)?.exitCode).toBe(137);
    const runtime = await runtimeOf(where, second);
    await resyncs(runtime).next();
    expect((await runtime.observe('uid-1', never)).containers).toMatchObject([
      { id: container, state: 'exited', exitCode: 137, reason: 'Error' },
    ]);
  });

  test('a new engine replaces the containerd of a killed engine, and the container keeps running', async () => {
    const where = newScratch();
    const engine = await startInOtherProcess(where);
    const runtime = await runtimeOf(where, engine);
    await loadImages(where, engine.endpoint);
    await runSleeper(where, runtime);
    const before = await runtime.observe('uid-1', never);
    engine.process.kill('SIGKILL');
    await engine.exited;
    expect(lives(engine.containerd)).toBe(true);

    const containerd = await start(where);
    expect(lives(engine.containerd)).toBe(false);
    expect(containerd.pid()).not.toBe(engine.containerd);
    await resyncs(runtime).next();
    expect(await runtime.observe('uid-1', never)).toEqual(before);
  });

  test('stopping containerd leaves its containers running', async () => {
    const where = newScratch();
    const containerd = await start(where);
    await loadImages(where, containerd.endpoint);
    const { container } = await runSleeper(where, await runtimeOf(where, containerd));
    const pid = containerd.pid() ?? 0;
    await containerd.stop();
    expect(lives(pid)).toBe(false);
    expect(containerd.pid()).toBeUndefined();
    expect(lives(firstProcess(where, container))).toBe(true);
    await start(where);
  });

  test('shutting containerd down leaves nothing behind, even if a container was running', async () => {
    const where = newScratch();
    const containerd = await start(where);
    await loadImages(where, containerd.endpoint);
    const { container } = await runSleeper(where, await runtimeOf(where, containerd));
    expect(mountsUnder(where.dataDir)).not.toEqual([]);
    expect(cgroupsOf(container)).not.toEqual([]);
    const shims = shimSockets(where);
    expect(shims.map((socket) => existsSync(socket))).toEqual([true]);
    await containerd.shutdown();
    expect(mountsUnder(where.dataDir)).toEqual([]);
    expect(processesNaming(where.dataDir)).toEqual([]);
    expect(cgroupsOf(container)).toEqual([]);
    expect(shims.map((socket) => existsSync(socket))).toEqual([false]);
    expect(existsSync(containerdPaths(where.dataDir).run)).toBe(false);
    expect(await runCommandOk('ip', ['-o', 'link', 'show', 'master', where.bridge])).toBe('');
  });

  test('clearRunState removes processes, mounts, groups and sockets without a running containerd', async () => {
    const where = newScratch();
    const containerd = await start(where);
    await loadImages(where, containerd.endpoint);
    const { container } = await runSleeper(where, await runtimeOf(where, containerd));
    const [sleeper, shims] = [firstProcess(where, container), shimSockets(where)];
    await containerd.stop();
    await clearRunState(where.options);
    expect(lives(sleeper)).toBe(false);
    expect(cgroupsOf(container)).toEqual([]);
    expect(mountsUnder(where.dataDir)).toEqual([]);
    expect(processesNaming(where.dataDir)).toEqual([]);
    expect(shims.map((socket) => existsSync(socket))).toEqual([false]);
    expect(existsSync(containerdPaths(where.dataDir).run)).toBe(false);
    // At its next start, containerd still has the record of the container, so the Pod can be ended as after a crash.
    const next = await start(where);
    const runtime = await runtimeOf(where, next);
    const { sandboxes, containers } = await runtime.observe('uid-1', never);
    expect(sandboxes).toMatchObject([{ ready: false }]);
    expect(containers).toMatchObject([{ state: 'exited' }]);
  });
});

/** Rejects if the other process ends before its containerd runs. */
async function startInOtherProcess(where: Scratch) {
  const module = new URL('../../src/runtime/containerd/containerd.ts', import.meta.url).href;
  const node = new URL('../../src/platform/node-js.ts', import.meta.url).href;
  const { log: _log, timers: _timers, ...plain } = where.options;
  const script = `
    import { startContainerd } from ${JSON.stringify(module)};
    import { nodePlatform } from ${JSON.stringify(node)};
    const containerd = await startContainerd({ ...${JSON.stringify(plain)}, ...nodePlatform('error') });
    console.log(JSON.stringify({ endpoint: containerd.endpoint, pid: containerd.pid() }));
  `;
  const child: ChildProcess = spawn(process.execPath, ['--input-type=module-typescript', '--eval', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  cleanups.push(() => {
    child.kill('SIGKILL');
  });
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  for await (const line of createInterface({ input: child.stdout as NodeJS.ReadableStream })) {
    const { endpoint, pid } = JSON.parse(line) as { endpoint: string; pid: number };
    return { process: child, endpoint, containerd: pid, exited };
  }
  throw new Error('the supervising process ended');
}
