import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Probe } from '../../src/api/generated/types.ts';
import { runHook } from '../../src/node/handlers/hook.ts';
import { type HandlerPorts, type ProbeOutcome, runProbe } from '../../src/node/handlers/probe.ts';
import type { HandlerTarget } from '../../src/node/handlers/target.ts';
import { systemTimers } from '../../src/platform/node-js.ts';
import { type ContainerConfig, ExecTimeoutError, type SandboxConfig } from '../../src/runtime/runtime.ts';
import { BUSYBOX, type RealRuntime, startRealRuntime } from './containerd-fixture.ts';

const never = new AbortController().signal;
const FOREVER = 'while :; do sleep 3600; done';
let real: RealRuntime;
let ports: HandlerPorts;
let target: HandlerTarget;
let sandbox: SandboxConfig;
let sandboxId: string;

beforeAll(async () => {
  real = await startRealRuntime();
  ports = { runtime: real.runtime, timers: systemTimers() };
  sandbox = {
    pod: { uid: 'uid', namespace: 'default', name: 'web' },
    attempt: 0,
    hostname: 'web',
    logDirectory: real.where.logDirectory,
    labels: {},
    annotations: {},
  };
  sandboxId = await real.runtime.runSandbox(sandbox, never);
  const containerId = await start('app', 'mkdir -p /www && echo fine > /www/healthz && exec httpd -f -p 8080 -h /www');
  const { sandboxes } = await real.runtime.observe('uid', never);
  target = {
    pod: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web', namespace: 'default', uid: 'uid' } },
    container: { name: 'app', ports: [{ name: 'http', containerPort: 8080 }] },
    containerId,
    podIp: sandboxes[0]?.ips[0] ?? '',
  };
  // httpd does not listen immediately after its start.
  while ((await probe({ tcpSocket: { port: 'http' } })).result !== 'Success');
});
afterAll(async () => {
  if (real === undefined) return;
  await real.runtime.stopSandbox(sandboxId, never);
  for (const { id } of (await real.runtime.observe('uid', never)).containers)
    await real.runtime.removeContainer(id, never);
  await real.runtime.removeSandbox(sandboxId, never);
  await real.close();
});

async function start(name: string, script: string): Promise<string> {
  const image = await real.runtime.imageStatus(BUSYBOX, never);
  const config: ContainerConfig = {
    pod: sandbox.pod,
    name,
    kind: 'app',
    attempt: 0,
    imageId: image?.id ?? '',
    imageName: BUSYBOX,
    command: ['sh', '-c', script],
    env: [],
    mounts: [],
    logPath: `${name}.log`,
    annotations: {},
    resources: {},
    security: {},
  };
  const id = await real.runtime.createContainer(sandboxId, sandbox, config, never);
  await real.runtime.startContainer(id, never);
  return id;
}

const exec = (script: string, timeoutMillis = 0, signal = never): ReturnType<HandlerPorts['runtime']['execSync']> =>
  real.runtime.execSync(target.containerId, ['sh', '-c', script], timeoutMillis, signal);
const probe = (spec: Probe): Promise<ProbeOutcome> => runProbe(target, spec, ports, never);
const execProbe = (...command: string[]): Promise<ProbeOutcome> => probe({ exec: { command } });

const processes = async (): Promise<string> => (await exec('ps')).stdout;

/** A killed process remains listed for a short time. */
async function gone(words: string): Promise<void> {
  while ((await processes()).includes(words));
}

describe('a command in a container', () => {
  test('a command in a container returns its exit code and both outputs', async () => {
    expect(await exec('echo out; echo err >&2; exit 3')).toEqual({ exitCode: 3, stdout: 'out\n', stderr: 'err\n' });
  });

  test('a command that is killed returns the exit code of the signal', async () => {
    expect(await exec('kill -9 $$')).toMatchObject({ exitCode: 137 });
  });

  test('a command returns at most the first 16 KiB of each output', async () => {
    const { stdout, stderr } = await exec('yes a | head -c 200000; yes b | head -c 20000 >&2');
    expect(stdout).toBe('a\n'.repeat(8192));
    expect(stderr).toBe('b\n'.repeat(8192));
  });

  test('a command is killed at its timeout in milliseconds, even if a child of it keeps the output open', async () => {
    const began = performance.now();
    const ended = exec('sleep 3333 & sleep 4444', 300);
    await expect(ended).rejects.toThrow(ExecTimeoutError);
    const took = performance.now() - began;
    expect(took).toBeGreaterThanOrEqual(299);
    // The child that keeps the output open sleeps for 3,333 s.
    expect(took).toBeLessThan(10_000);
    await gone('sleep 4444');
    expect(await processes()).toContain('sleep 3333');
    await exec('pkill -f "^sleep 3333"');
  });

  test('a command whose call is aborted is killed', async () => {
    const end = new AbortController();
    const ended = exec('touch /began; exec sleep 5555', 0, end.signal);
    while ((await exec('test -e /began')).exitCode !== 0);
    expect(await processes()).toContain('sleep 5555');
    end.abort(new Error('given up'));
    await expect(ended).rejects.toThrow('given up');
    await gone('sleep 5555');
  });

  test('a command cannot run in a container that has exited', async () => {
    const id = await start('short', FOREVER);
    await real.runtime.stopContainer(id, 0, never);
    await expect(real.runtime.execSync(id, ['true'], 0, never)).rejects.toThrow(
      /^rpc error: code = Unknown desc = failed to exec in container: container is in CONTAINER_EXITED state$/,
    );
  });

  test('a command dies with its container', async () => {
    const id = await start('dying', FOREVER);
    const ended = real.runtime.execSync(id, ['sh', '-c', FOREVER], 0, never);
    const began = async (): Promise<boolean> => {
      const { stdout } = await real.runtime.execSync(id, ['ps'], 0, never);
      return stdout.split('sleep 3600').length > 3;
    };
    while (!(await began()));
    await real.runtime.stopContainer(id, 0, never);
    expect(await ended).toMatchObject({ exitCode: 137 });
  });
});

describe('a probe', () => {
  test('an exec probe succeeds on exit code 0', async () => {
    expect(await execProbe('test', '-e', '/www/healthz')).toEqual({ result: 'Success', message: '' });
    expect(await execProbe('cat', '/tmp/healthy')).toEqual({
      result: 'Failure',
      message: "cat: can't open '/tmp/healthy': No such file or directory\n",
    });
  });

  test('an exec probe that takes longer than timeoutSeconds fails', async () => {
    const began = performance.now();
    expect(await probe({ exec: { command: ['sleep', '10'] }, timeoutSeconds: 1 })).toEqual({
      result: 'Failure',
      message: 'command "sleep 10" timed out',
    });
    // The command sleeps for 10 s.
    expect(performance.now() - began).toBeLessThan(9000);
  });

  test('an exec probe whose command does not exist has the result Unknown', async () => {
    const { result, message } = await execProbe('/no/such/program');
    expect(result).toBe('Unknown');
    expect(message).toMatch(/^rpc error: code = \w+ desc = failed to exec in container: .*no such file or directory/);
  });

  test("HTTP and TCP probes reach named and numbered ports at the Pod's address", async () => {
    expect(await probe({ httpGet: { port: 'http', path: '/healthz' } })).toEqual({ result: 'Success', message: '' });
    expect(await probe({ httpGet: { port: 8080, path: '/none' } })).toEqual({
      result: 'Failure',
      message: 'HTTP probe failed with statuscode: 404',
    });
    expect(await probe({ tcpSocket: { port: 9 } })).toEqual({
      result: 'Failure',
      message: `dial tcp ${target.podIp}:9: connect: connection refused`,
    });
  });
});

describe('a hook', () => {
  test('an exec hook runs its command in the container', async () => {
    await runHook(target, { exec: { command: ['sh', '-c', 'echo hooked > /hooked'] } }, ports, never);
    expect((await exec('cat /hooked')).stdout).toBe('hooked\n');
  });

  test('an exec hook that fails reports its exit code and output', async () => {
    const failed = runHook(target, { exec: { command: ['sh', '-c', 'echo out; echo err >&2; exit 3'] } }, ports, never);
    await expect(failed).rejects.toThrow(
      'Exec lifecycle hook ([sh -c echo out; echo err >&2; exit 3]) for Container "app" in Pod "web_default(uid)" failed' +
        ` - error: command 'sh -c echo out; echo err >&2; exit 3' exited with 3: err\n, message: "out\\nerr\\n"`,
    );
  });

  test('an HTTP hook requests a named port of the container', async () => {
    expect(await runHook(target, { httpGet: { port: 'http', path: '/healthz' } }, ports, never)).toEqual({});
  });
});
