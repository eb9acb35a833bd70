import { expect, test } from 'vitest';
import { containerOf, podOf } from '../../api/core/v1/pod/pod-fixtures.ts';
import type { Container } from '../../api/generated/types.ts';
import { systemTimers } from '../../platform/node-js.ts';
import type { Log } from '../../platform/platform.ts';
import {
  type ContainerObservation,
  type ContainerRuntime,
  ExecTimeoutError,
  OutcomeUnknownError,
} from '../../runtime/runtime.ts';
import { createStartGate } from '../streams/exec-gate.ts';
import { createPodHandlers } from './pod-handlers.ts';

const { signal } = new AbortController();
const log: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => log,
};
const unreachable = new OutcomeUnknownError('rpc error: code = Unavailable desc = Connection dropped');
const exec = { exec: { command: ['check'] } };
/** Nothing listens on the port. */
const tcp = { tcpSocket: { port: 1 } };

/** `observe` resolves to the container's state, or to undefined if the container was removed. */
function handlers(
  container: Partial<Container>,
  execSync: () => Promise<{ exitCode: number }>,
  observe: () => Promise<ContainerObservation['state'] | undefined>,
) {
  const events: string[] = [];
  const runtime = {
    execSync: async () => ({ stdout: '', stderr: '', ...(await execSync()) }),
    observe: async () => {
      const state = await observe();
      return { sandboxes: [], containers: state === undefined ? [] : [{ id: 'c', state }] };
    },
  } as unknown as ContainerRuntime;
  const { runProbe, runHook } = createPodHandlers({
    runtime,
    log,
    timers: systemTimers(),
    podIp: () => '127.0.0.1',
    startGate: createStartGate(systemTimers()),
    events: { event: (_pod: unknown, _type: unknown, reason: string) => events.push(reason) } as never,
  });
  const pod = podOf({ containers: [{ ...containerOf('app'), ...container }] });
  const run = { container: 'app', id: 'c' };
  return {
    events,
    probe: () => runProbe(pod, { kind: 'runProbe', ...run, probe: 'liveness' }, signal),
    hook: () => runHook(pod, { kind: 'runHook', ...run, hook: 'preStop' }, signal),
  };
}

const exits = (exitCode: number) => async () => ({ exitCode });
const fails = (error: Error) => () => Promise.reject(error);

test('an exec hook has no result if the runtime does not answer', async () => {
  const { hook, events } = handlers({ lifecycle: { preStop: exec } }, fails(unreachable), async () => 'running');
  await expect(hook()).rejects.toBe(unreachable);
  expect(events).toEqual([]);
});

test('an exec probe has no result if the runtime does not answer', async () => {
  const { probe } = handlers({ livenessProbe: exec }, fails(unreachable), async () => 'running');
  await expect(probe()).rejects.toBe(unreachable);
});

test.each([
  ['exits with 1', exits(1), 'Failure'],
  ['times out', fails(new ExecTimeoutError(['check'])), 'Failure'],
  ['cannot be run', fails(new Error('no such file or directory')), 'Unknown'],
])('a command that %s in a running container determines the result of its probe', async (_what, execSync, result) => {
  const { probe } = handlers({ livenessProbe: exec }, execSync, async () => 'running');
  await expect(probe()).resolves.toMatchObject({ result });
});

test.each([
  ['was killed with the container', exits(137), 'exited' as const],
  ['times out', fails(new ExecTimeoutError(['check'])), 'exited' as const],
  ['could not start after the exit', fails(new Error('container is in CONTAINER_EXITED state')), 'exited' as const],
  ['could not start after the removal', fails(new Error('failed to find container in store: not found')), undefined],
])('a probe whose command %s has no result if the container has ended', async (_what, execSync, state) => {
  const { probe } = handlers({ livenessProbe: exec }, execSync, async () => state);
  await expect(probe()).rejects.toThrow('the liveness probe of container app has no result: the container has ended');
});

test('a probe whose command times out has no result if the runtime does not answer', async () => {
  const { probe } = handlers({ livenessProbe: exec }, fails(new ExecTimeoutError(['check'])), fails(unreachable));
  await expect(probe()).rejects.toBeInstanceOf(OutcomeUnknownError);
});

test('a TCP probe fails although the runtime does not answer, but has no result if the container has ended', async () => {
  const failing = (observe: () => Promise<ContainerObservation['state'] | undefined>) =>
    handlers({ livenessProbe: tcp }, exits(0), observe).probe();
  await expect(failing(fails(unreachable))).resolves.toMatchObject({ result: 'Failure' });
  await expect(failing(async () => 'running')).resolves.toMatchObject({ result: 'Failure' });
  await expect(failing(async () => 'exited')).rejects.toBeInstanceOf(OutcomeUnknownError);
});
