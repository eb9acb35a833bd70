import { type ChildProcess, spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { get, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect } from 'vitest';
import type { EndpointSlice } from '../../src/api/generated/types.ts';
import { processesNaming } from '../../src/engine/leftovers.ts';
import { runCommandOk } from '../../src/platform/processes.ts';
import { KUBECTL } from '../support/kubectl.ts';
import { pod, WAIT } from '../support/manifests.ts';
import { lifepod, testInFileNamespace as test } from '../support/shared-engine.ts';

const DEADLINE_MILLIS = 60_000;
const MEGABYTE = 1024 * 1024;
const random = randomBytes(8 * MEGABYTE);
const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

let folder: string;
const running = new Set<ChildProcess>();

test.beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'lifepod-streams-'));
  await lifepod.apply(
    pod('box', {
      app: [
        { name: 'app', script: WAIT },
        { name: 'web', script: 'mkdir /www; head -c 3000000 /dev/urandom >/www/file; exec httpd -f -p 8080 -h /www' },
        { name: 'echo', script: 'exec nc -ll -p 9000 -e cat' },
      ],
      // The grace period is short, because httpd and nc ignore SIGTERM.
      spec: { terminationGracePeriodSeconds: 1 },
    }),
  );
  await lifepod.apply(
    pod('half', {
      app: [
        { name: 'app', script: WAIT },
        { name: 'over', script: 'true' },
      ],
      spec: { restartPolicy: 'Never' },
    }),
  );
  await lifepod.apply(pod('over', { app: [{ name: 'app', script: 'true' }], spec: { restartPolicy: 'Never' } }));
  await lifepod.wait('--for=condition=Ready', 'pod/box');
  await lifepod.wait('--for=jsonpath={.status.phase}=Succeeded', 'pod/over');
  await lifepod.kubectlOk(
    'wait',
    '--for=jsonpath={.status.containerStatuses[1].state.terminated}',
    'pod/half',
    '--timeout=60s',
  );
});

afterEach(async () => {
  for (const child of running) child.kill('SIGKILL');
  await Promise.all([...running].map((child) => once(child, 'close')));
});

test.afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
});

interface Running {
  child: ChildProcess;
  /** Rejects if the process ends without a match. */
  printed(pattern: RegExp): Promise<RegExpExecArray>;
  ended: Promise<{ code: number; stdout: Buffer; stderr: string }>;
}

function start(env: NodeJS.ProcessEnv, command: string, args: string[], input?: Uint8Array | 'open'): Running {
  const child = spawn(command, args, {
    env: { ...process.env, KUBECONFIG: lifepod.kubeconfig, HOME: lifepod.dataDir, ...env },
    stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    timeout: DEADLINE_MILLIS,
    killSignal: 'SIGKILL',
  });
  running.add(child);
  const stdout: Buffer[] = [];
  const stderr: Buffer[] = [];
  const waiting = new Set<() => void>();
  let closed = false;
  const note = (list: Buffer[]) => (piece: Buffer) => {
    list.push(piece);
    for (const look of waiting) look();
  };
  child.stdout?.on('data', note(stdout));
  child.stderr?.on('data', note(stderr));
  child.stdin?.on('error', () => undefined);
  if (input !== 'open') child.stdin?.end(input);
  const all = (): string => Buffer.concat([...stdout, ...stderr]).toString();
  const ended = once(child, 'close').then(([code]) => {
    running.delete(child);
    closed = true;
    for (const look of waiting) look();
    return {
      code: (code as number | null) ?? -1,
      stdout: Buffer.concat(stdout),
      stderr: Buffer.concat(stderr).toString(),
    };
  });
  return {
    child,
    ended,
    printed: (pattern) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const match = pattern.exec(all());
          if (match === null && !closed) return;
          waiting.delete(look);
          if (match === null) reject(new Error(`${args.join(' ')} ended without ${pattern}:\n${all()}`));
          else resolve(match);
        };
        waiting.add(look);
        look();
      }),
  };
}

interface PodStatus {
  status: { phase: string; containerStatuses: { name: string; containerID: string; restartCount: number }[] };
}

const containersOf = async (name: string) =>
  (await lifepod.get<PodStatus>('pod', name)).status.containerStatuses.map(({ containerID, restartCount }) => ({
    containerID,
    restartCount,
  }));

test('the engine and its runtime listen only on loopback, except for the API and DNS on the addresses for Pods', async () => {
  const pids = processesNaming(lifepod.dataDir).map(({ pid }) => pid);
  const listening = (await runCommandOk('ss', ['-Hltnp'])).split('\n');
  const own = listening.filter((line) => pids.some((pid) => line.includes(`pid=${pid},`)));
  const addresses = own.map((line) => line.trim().split(/\s+/)[3] ?? '').filter((address) => !address.endsWith(':53'));
  expect(own.filter((line) => line.includes('"containerd"'))).toHaveLength(1);
  const { endpoints, ports } = await lifepod.get<EndpointSlice>('-n', 'default', 'endpointslice', 'kubernetes');
  const forPods = `${endpoints?.[0]?.addresses[0]}:${ports?.[0]?.port}`;
  expect(addresses.filter((address) => !address.startsWith('127.0.0.1:'))).toEqual([forPods]);
});

describe.each([
  ['WebSocket', {}],
  ['SPDY', { KUBECTL_REMOTE_COMMAND_WEBSOCKETS: 'false', KUBECTL_PORT_FORWARD_WEBSOCKETS: 'false' }],
] as const)('over %s', (transport, env) => {
  const kubectl = (...args: string[]): Running => start(env, KUBECTL, args);
  const exec = (...command: string[]) => kubectl('exec', 'box', '--', ...command).ended;
  const execInput = (input: Uint8Array, ...command: string[]) =>
    start(env, KUBECTL, ['exec', '-i', 'box', '--', ...command], input).ended;
  /** script(1) creates a new pseudo-terminal. */
  const inTerminal = (line: string, input: Uint8Array | 'open'): Running =>
    start(env, 'script', ['-qefc', line, '/dev/null'], input);

  test('kubectl streams over the protocol that its environment variables select', async () => {
    const { stderr } = await kubectl('exec', '-v=4', 'box', '--', 'true').ended;
    expect(stderr.includes('The subprotocol is v5.channel.k8s.io')).toBe(transport === 'WebSocket');
  });

  describe('exec', () => {
    test('kubectl exec keeps stdout and stderr separate and returns the exit code of the command', async () => {
      const { code, stdout, stderr } = await exec('sh', '-c', 'echo out; echo err >&2; exit 3');
      expect({ code, stdout: stdout.toString() }).toEqual({ code: 3, stdout: 'out\n' });
      expect(stderr).toContain('err\n');
      expect(stderr).toContain('command terminated with exit code 3');
      expect(await exec('true')).toMatchObject({ code: 0 });
      expect(await exec('sh', '-c', 'kill -9 $$')).toMatchObject({ code: 137 });
    });

    test('kubectl exec runs the command in the named container, with unchanged arguments', async () => {
      const { stdout } = await kubectl('exec', 'box', '-c', 'web', '--', 'printf', '%s|', 'a b', '', '$HOME', '&?=')
        .ended;
      expect(stdout.toString()).toBe('a b||$HOME|&?=|');
      const { stdout: command } = await kubectl('exec', 'box', '-c', 'web', '--', 'cat', '/proc/1/cmdline').ended;
      expect(command.toString()).toContain('httpd');
    });

    test('kubectl exec transfers megabytes of input and output, and the end of the input', async () => {
      const through = await execInput(random, 'cat');
      expect(through.code).toBe(0);
      expect(sha256(through.stdout)).toBe(sha256(random));
      const counted = await execInput(random, 'sha256sum');
      expect(counted.stdout.toString()).toBe(`${sha256(random)}  -\n`);
      const zeros = await exec('head', '-c', '30000000', '/dev/zero');
      expect(zeros.stdout.length).toBe(30_000_000);
    });

    test('kubectl exec ends when the command ends, even if the input is still open', async () => {
      const session = start(env, KUBECTL, ['exec', '-i', 'box', '--', 'head', '-c', '1000'], 'open');
      session.child.stdin?.write(random.subarray(0, 50_000));
      const { code, stdout } = await session.ended;
      expect(code).toBe(0);
      expect(stdout.equals(random.subarray(0, 1000))).toBe(true);
    });

    test('kubectl exec in a terminal passes on the size of the terminal and its changes, and returns the exit code', async () => {
      const terminal = join(folder, 'terminal');
      const inside = [
        'until [ "$(stty size)" = "33 77" ]; do :; done',
        'trap "stty size; exit 7" WINCH',
        'echo the size is right',
        'while :; do sleep 1 & wait; done',
      ].join('; ');
      const session = inTerminal(
        `stty rows 33 cols 77; tty >${terminal}; exec kubectl exec -it box -- sh -c '${inside}'`,
        'open',
      );
      await session.printed(/the size is right/);
      await runCommandOk('stty', ['-F', readFileSync(terminal, 'utf8').trim(), 'rows', '44']);
      await session.printed(/44 77/);
      expect(await session.ended).toMatchObject({ code: 7 });
    });

    test('many kubectl exec sessions can run at the same time', async () => {
      const inputs = Array.from({ length: 12 }, (_, index) => random.subarray(index * 1000, index * 1000 + 200_000));
      const results = await Promise.all(inputs.map((input) => execInput(input, 'cat')));
      expect(results.map(({ stdout }) => sha256(stdout))).toEqual(inputs.map(sha256));
    });
  });

  describe('errors', () => {
    test.each([
      ['exec in a missing Pod', ['exec', 'none', '--', 'true'], 'pods "none" not found'],
      [
        'exec in a missing container',
        ['exec', 'box', '-c', 'none', '--', 'true'],
        'container none is not valid for pod box',
      ],
      [
        'exec in a container that has ended',
        ['exec', 'half', '-c', 'over', '--', 'true'],
        'unable to upgrade connection: container not found ("over")',
      ],
      [
        'exec in a Pod that has ended',
        ['exec', 'over', '--', 'true'],
        'cannot exec into a container in a completed pod; current phase is Succeeded',
      ],
      ['exec of a missing command', ['exec', 'box', '--', '/none'], 'no such file or directory'],
      ['attach to a container that has ended', ['attach', 'half', '-c', 'over'], 'container not found ("over")'],
    ])('%s fails, and kubectl prints the reason', async (_call, args, message) => {
      const { code, stderr } = await kubectl(...args).ended;
      expect(code).not.toBe(0);
      expect(stderr).toContain(message);
    });
  });

  describe('attach', () => {
    test('kubectl attach connects to the process of the container, and the process keeps running afterwards', async () => {
      const name = `attached-${transport.toLowerCase()}`;
      const script = 'while read line; do echo "out $line"; echo "err $line" >&2; done';
      await lifepod.apply(pod(name, { app: [{ name: 'app', script, stdin: true }] }));
      await lifepod.wait('--for=condition=Ready', `pod/${name}`);
      const before = await containersOf(name);
      for (const word of ['first', 'second']) {
        const attached = start(env, KUBECTL, ['attach', '-i', name], 'open');
        attached.child.stdin?.write(`${word}\n`);
        await Promise.all([attached.printed(new RegExp(`out ${word}`)), attached.printed(new RegExp(`err ${word}`))]);
        attached.child.stdin?.end();
        expect(await attached.ended).toMatchObject({ code: 0, stdout: Buffer.from(`out ${word}\n`) });
      }
      expect(await containersOf(name)).toEqual(before);
      await lifepod.delete('pod', name, '--grace-period=1');
    });

    test('kubectl run -i --rm passes on input, output and exit code, and deletes the Pod', async () => {
      const name = `run-${transport.toLowerCase()}`;
      const args = [
        'run',
        '-i',
        '--rm',
        '--restart=Never',
        '--image=busybox:1.28',
        name,
        '--',
        'sh',
        '-c',
        'sha256sum; exit 4',
      ];
      const { code, stdout } = await start(env, KUBECTL, args, random).ended;
      expect(stdout.toString()).toContain(`${sha256(random)}  -\n`);
      expect(code).toBe(4);
      await lifepod.wait('--for=delete', `pod/${name}`, '--timeout=30s');
    });

    test('kubectl run -it --rm opens a shell in a terminal', async () => {
      const name = `shell-${transport.toLowerCase()}`;
      const session = inTerminal(`${KUBECTL} run -it --rm --restart=Never --image=busybox:1.28 ${name} -- sh`, 'open');
      await session.printed(/# /);
      session.child.stdin?.write('tty; echo $((6 * 7)); exit 5\n');
      await session.printed(/\/dev\/pts\/0\s+42/);
      expect(await session.ended).toMatchObject({ code: 5 });
      await lifepod.wait('--for=delete', `pod/${name}`, '--timeout=30s');
    });
  });

  describe('port-forward', () => {
    /** Resolves once kubectl listens on the local ports. */
    const forward = async (...ports: string[]) => {
      const forwarding = kubectl('port-forward', 'box', ...ports);
      const local = await Promise.all(
        ports.map(async (port) => {
          const inPod = port.replace(/^.*:/, '');
          const [, found] = await forwarding.printed(new RegExp(`Forwarding from 127.0.0.1:(\\d+) -> ${inPod}\\n`));
          return Number(found);
        }),
      );
      return { forwarding, local };
    };
    const download = async (port: number): Promise<string> => {
      const [response] = (await once(get({ host: '127.0.0.1', port, path: '/file', agent: false }), 'response')) as [
        IncomingMessage,
      ];
      const hash = createHash('sha256');
      for await (const piece of response) hash.update(piece as Buffer);
      return hash.digest('hex');
    };

    test('kubectl port-forward serves several ports and many connections at the same time', async () => {
      const { local } = await forward(':8080', ':9000');
      const [web = 0, echo = 0] = local;
      const { stdout } = await kubectl('exec', 'box', '-c', 'web', '--', 'sha256sum', '/www/file').ended;
      const [expected] = stdout.toString().split(' ');
      const downloads = await Promise.all(Array.from({ length: 10 }, () => download(web)));
      expect(downloads).toEqual(downloads.map(() => expected));
      const socket = connect(echo, '127.0.0.1');
      const pieces: Buffer[] = [];
      let bytes = 0;
      const whole = new Promise<void>((resolve) => {
        socket.on('data', (piece) => {
          pieces.push(piece);
          bytes += piece.length;
          if (bytes >= 2 * MEGABYTE) resolve();
        });
      });
      socket.write(random.subarray(0, 2 * MEGABYTE));
      await whole;
      socket.destroy();
      expect(sha256(Buffer.concat(pieces))).toBe(sha256(random.subarray(0, 2 * MEGABYTE)));
    });

    test('kubectl port-forward to a port without a listener reports the error', async () => {
      const { forwarding, local } = await forward(':81');
      const socket = connect(local[0] ?? 0, '127.0.0.1');
      socket.on('error', () => undefined);
      await once(socket.resume(), 'close');
      await forwarding.printed(/an error occurred forwarding \d+ -> 81: .*connection refused/);
    });
  });

  test('kubectl cp copies a folder into a container and back', async () => {
    const own = join(folder, transport);
    mkdirSync(join(own, 'sent', 'inner'), { recursive: true });
    writeFileSync(join(own, 'sent', 'large'), random);
    writeFileSync(join(own, 'sent', 'inner', 'small'), 'small\n');
    expect(await kubectl('cp', join(own, 'sent'), `box:/tmp/${transport}`, '-c', 'app').ended).toMatchObject({
      code: 0,
    });
    const { stdout } = await exec('sha256sum', `/tmp/${transport}/large`);
    expect(stdout.toString()).toContain(sha256(random));
    expect(await kubectl('cp', `box:/tmp/${transport}`, join(own, 'back'), '-c', 'app').ended).toMatchObject({
      code: 0,
    });
    expect(sha256(readFileSync(join(own, 'back', 'large')))).toBe(sha256(random));
    expect(readFileSync(join(own, 'back', 'inner', 'small'), 'utf8')).toBe('small\n');
  });

  test.each(['SIGTERM', 'SIGKILL'] as const)(
    '%s to the engine ends exec and port-forward, and the Pod keeps running',
    async (signal) => {
      const before = await containersOf('box');
      const cat = start(env, KUBECTL, ['exec', '-i', 'box', '--', 'cat'], 'open');
      cat.child.stdin?.write('there\n');
      const forwarding = kubectl('port-forward', 'box', ':8080');
      await Promise.all([cat.printed(/there/), forwarding.printed(/Forwarding from/)]);
      await lifepod.kill(signal);
      const [catEnded] = await Promise.all([cat.ended, forwarding.ended]);
      // Over SPDY, and after SIGKILL, kubectl cannot distinguish the end of the engine from the end of the command.
      if (transport === 'WebSocket' && signal === 'SIGTERM') {
        expect(catEnded.code).not.toBe(0);
        expect(catEnded.stderr).toContain('the API server is shutting down');
      }
      await lifepod.up();
      await lifepod.wait('--for=condition=Ready', 'pod/box');
      expect(await containersOf('box')).toEqual(before);
      expect(await execInput(random, 'cat')).toMatchObject({ code: 0 });
    },
  );
});
