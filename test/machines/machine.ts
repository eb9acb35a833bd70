/**
 * A virtual machine with systemd, cgroup v2 and containerd, under qemu. Its processor is emulated, so that it runs wherever qemu can be
 * installed. Changes to its disk are discarded when it stops. Its network only allows ssh from the host's loopback.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, inject } from 'vitest';
import { type CommandResult, runCommand, runCommandOk } from '../../src/platform/processes.ts';
import { freePort } from '../support/registry.ts';

/** Version 1.7 is from Debian 13, version 2 from Debian's unstable release. */
export type ContainerdVersion = '1.7' | '2';

export interface Machine {
  /** Runs a bash script as root, and resolves with its result. Rejects after `seconds`, 300 by default. */
  run(script: string, seconds?: number): Promise<CommandResult>;
  /** Like run(), but rejects if a command of the script fails, and resolves with standard output. */
  ok(script: string, seconds?: number): Promise<string>;
  /**
   * Resolves when the machine accepts commands again. `orderly`: systemd stops all units first. `crash`: the kernel resets the machine at
   * once, as if its power failed.
   */
  reboot(how: keyof typeof REBOOT): Promise<void>;
  stop(): Promise<void>;
}

const REBOOT = { orderly: 'systemctl reboot', crash: 'echo b >/proc/sysrq-trigger' } as const;
const BUILD = join(import.meta.dirname, 'build-machine.sh');
const BOOT_MILLIS = 300_000;
/** ssh returns this exit code if the connection ends before the command does. */
const SSH_FAILED = 255;

/**
 * Resolves with the folder of the machine's image. If the user's cache lacks the image, builds it and removes the image of an older version
 * of the script.
 */
async function machineImage(version: ContainerdVersion): Promise<string> {
  const cache = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'lifepod/machines');
  const digest = createHash('sha256').update(readFileSync(BUILD)).digest('hex').slice(0, 8);
  const folder = join(cache, `containerd-${version}-${digest}`);
  if (existsSync(folder)) return folder;
  mkdirSync(cache, { recursive: true });
  const remove = (prefix: string): void =>
    readdirSync(cache)
      .filter((name) => name.startsWith(prefix))
      .forEach((name) => void rmSync(join(cache, name), { recursive: true, force: true }));
  remove(`unfinished-${version}-`);
  const unfinished = mkdtempSync(join(cache, `unfinished-${version}-`));
  try {
    await runCommandOk('bash', [BUILD, version, unfinished]);
    remove(`containerd-${version}-`);
    renameSync(unfinished, folder);
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
  return folder;
}

/** Starts a machine before the tests of the file, and stops it after them. */
export function useMachine(version: ContainerdVersion): () => Machine {
  let started: Machine | undefined;
  beforeAll(async () => {
    started = await startMachine(version);
  });
  afterAll(() => started?.stop());
  return () => {
    if (started === undefined) throw new Error('the machine has not started');
    return started;
  };
}

/** The machine has the package in /opt/lifepod/package, lifepod on the PATH, and images in /opt/lifepod/images. */
async function startMachine(version: ContainerdVersion): Promise<Machine> {
  const image = await machineImage(version);
  const port = await freePort();
  const qemu = spawn('setpriv', ['--pdeathsig', 'KILL', 'qemu-system-x86_64', ...qemuOptions(image, port)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const console = followConsole(qemu);
  const scratch = mkdtempSync(join(tmpdir(), 'lifepod-ssh-'));
  const ssh = [
    '-i',
    join(image, 'key'),
    '-p',
    String(port),
    '-S',
    join(scratch, 'connection'),
    ...['StrictHostKeyChecking=no', 'UserKnownHostsFile=/dev/null', 'LogLevel=ERROR'].flatMap(option),
    ...['ServerAliveInterval=20', 'ServerAliveCountMax=6'].flatMap(option),
    'root@127.0.0.1',
  ];
  const run: Machine['run'] = async (script, seconds = 300) => {
    const result = await runCommand('ssh', [...ssh, 'bash', '-s'], {
      input: `export KUBECONFIG=/var/lib/lifepod/kubeconfig\n${script}\n`,
      signal: AbortSignal.timeout(seconds * 1000),
    });
    if (result.code === SSH_FAILED) throw new Error(`the connection to the machine is lost; ${console.tail()}`);
    return result;
  };
  /** Opens one ssh connection in the background for all commands, because opening a connection takes seconds. */
  const connect = async (): Promise<void> => {
    const [code] = await once(spawn('ssh', ['-M', '-N', '-f', ...ssh], { stdio: 'ignore' }), 'exit');
    if (code !== 0) throw new Error(`ssh does not reach the virtual machine: exit code ${code}`);
  };
  const disconnect = (): Promise<unknown> => runCommand('ssh', ['-O', 'exit', ...ssh]);
  const machine: Machine = {
    run,
    async ok(script, seconds) {
      const { code, stdout, stderr } = await run(`set -eo pipefail\n${script}`, seconds);
      if (code !== 0) throw new Error(`exit code ${code} of\n${script}\n${stdout}${stderr}`);
      return stdout;
    },
    async reboot(how) {
      const ready = console.ready();
      // The connection may end before the command. After a crash, neither of them ends, because nothing closes the connection.
      await Promise.race([run(REBOOT[how]).catch(() => undefined), ready]);
      await disconnect();
      await ready;
      await connect();
    },
    async stop() {
      await disconnect();
      const ended = once(qemu, 'exit');
      if (qemu.exitCode === null && qemu.kill('SIGKILL')) await ended;
      rmSync(scratch, { recursive: true, force: true });
    },
  };
  try {
    await console.ready();
    await connect();
    await machine.ok(
      'mkdir /opt/lifepod && tar -C /opt/lifepod -xf /dev/vdb && ln -s /opt/lifepod/package/node_modules/.bin/lifepod /usr/local/bin/',
    );
    return machine;
  } catch (error) {
    await machine.stop();
    throw error;
  }
}

const option = (text: string): string[] => ['-o', text];

/** cx16 is disabled because guests sometimes crash with it under this emulation, la57 and pku because they cost time. */
const qemuOptions = (image: string, port: number): string[] => [
  '-accel',
  'tcg,thread=multi',
  '-cpu',
  'max,-cx16,-la57,-pku',
  '-smp',
  '2',
  '-m',
  '2048',
  '-nodefaults',
  '-display',
  'none',
  '-serial',
  'stdio',
  '-device',
  'virtio-rng-pci',
  '-kernel',
  join(image, 'vmlinuz'),
  '-initrd',
  join(image, 'initrd.img'),
  '-append',
  'root=/dev/vda console=ttyS0 panic=-1 net.ifnames=0 quiet',
  '-drive',
  `file=${join(image, 'disk.img')},format=raw,if=virtio,cache=unsafe,snapshot=on`,
  '-drive',
  `file=${inject('packageArchive')},format=raw,if=virtio,readonly=on`,
  '-netdev',
  `user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:${port}-:22`,
  '-device',
  'virtio-net-pci,netdev=net',
];

/**
 * The machine writes the line machine-ready to its console when ssh listens. ready() resolves at the next such line. tail() returns the
 * last lines.
 */
function followConsole(qemu: ChildProcess): { ready(): Promise<void>; tail(): string } {
  const lines: string[] = [];
  let waiting: { resolve(): void; reject(error: Error): void } | undefined;
  const tail = (): string => `its console:\n${lines.slice(-60).join('\n')}`;
  const fail = (why: string): void => waiting?.reject(new Error(`${why}; ${tail()}`));
  if (qemu.stdout !== null) {
    createInterface({ input: qemu.stdout }).on('line', (line) => {
      lines.push(line);
      if (line.includes('machine-ready')) waiting?.resolve();
    });
  }
  qemu.once('exit', (code, signal) => fail(`the virtual machine ended (${signal ?? code})`));
  return {
    tail,
    async ready() {
      const late = setTimeout(() => fail('the virtual machine is not up'), BOOT_MILLIS);
      try {
        await new Promise<void>((resolve, reject) => {
          waiting = { resolve, reject };
        });
      } finally {
        clearTimeout(late);
        waiting = undefined;
      }
    },
  };
}
