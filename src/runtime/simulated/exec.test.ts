import { expect, test } from 'vitest';
import { systemTimers } from '../../platform/node-js.ts';
import { ExecTimeoutError } from '../runtime.ts';
import type { ExecScript } from './exec.ts';
import { createSimulatedRuntime, type SimulatedRuntime } from './simulated-runtime.ts';

const never = new AbortController().signal;
const pod = { uid: 'uid', namespace: 'default', name: 'pod' };

/** Resolves with a runtime that has one running container, and the container's ID. Each command in the container follows the script. */
async function running(script: ExecScript): Promise<{ runtime: SimulatedRuntime; id: string }> {
  const runtime = createSimulatedRuntime({ timers: systemTimers(), script: () => ({}), exec: () => script });
  const sandbox = { pod, attempt: 0, hostname: 'pod', logDirectory: '/', labels: {}, annotations: {} };
  const sandboxId = await runtime.runSandbox(sandbox, never);
  const container = { pod, name: 'app', kind: 'app', attempt: 0, imageId: 'i', imageName: 'i', logPath: 'l' } as const;
  const empty = { env: [], mounts: [], annotations: {}, resources: {}, security: {} };
  const id = await runtime.createContainer(sandboxId, sandbox, { ...container, ...empty }, never);
  await runtime.startContainer(id, never);
  return { runtime, id };
}

test('a command in a simulated container has the result that is defined in its script', async () => {
  const { runtime, id } = await running({ millis: 5, exitCode: 3, stdout: 'out', stderr: 'err' });
  expect(await runtime.execSync(id, ['x'], 0, never)).toEqual({ exitCode: 3, stdout: 'out', stderr: 'err' });
});

test('a command in a simulated container is killed after its timeout', async () => {
  const { runtime, id } = await running({ millis: 3_600_000 });
  const timeout = runtime.execSync(id, ['sleep', '3600'], 5, never);
  await expect(timeout).rejects.toThrow(ExecTimeoutError);
  await expect(timeout).rejects.toThrow('command "sleep 3600" timed out');
});

test('a command in a simulated container is killed when the container ends', async () => {
  const { runtime, id } = await running({ millis: 3_600_000 });
  const ended = runtime.execSync(id, ['x'], 0, never);
  // Both calls have the same latency and so take effect in the order in which they were made: the command starts before the stop.
  const killed = runtime.stopContainer(id, 0, never);
  expect(await ended).toMatchObject({ exitCode: 137 });
  await killed;
  await expect(runtime.execSync(id, ['x'], 0, never)).rejects.toThrow('is not running');
});

test('an aborted command in a simulated container rejects with the reason of the signal', async () => {
  const { runtime, id } = await running({ millis: 3_600_000 });
  const giveUp = new AbortController();
  const ended = runtime.execSync(id, ['x'], 0, giveUp.signal);
  giveUp.abort(new Error('given up'));
  await expect(ended).rejects.toThrow('given up');
});
