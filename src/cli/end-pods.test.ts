import { expect, test } from 'vitest';
import type { Pod } from '../api/generated/types.ts';
import { PODS } from '../api/resources.ts';
import { registryBackend } from '../client/registry-fixture.ts';
import { inProcessClient } from '../client/typed-client.ts';
import { type ApiError, forbidden, insufficientStorage } from '../machinery/status.ts';
import { systemTimers } from '../platform/node-js.ts';
import { silentLog } from '../platform/silent-log.ts';
import { createSimulatedRuntime } from '../runtime/simulated/simulated-runtime.ts';
import { endAllPods, removeRest } from './end-pods.ts';

const ending = async (failure: ApiError) => {
  const backend = await registryBackend();
  const metadata = { name: 'web', namespace: 'default' };
  const spec = { containers: [{ name: 'app', image: 'x' }] };
  await backend.set<Pod>(PODS, { apiVersion: 'v1', kind: 'Pod', metadata, spec });
  backend.failNext('delete pods', failure);
  const said: string[] = [];
  const platform = { timers: systemTimers(), log: silentLog };
  const { signal } = new AbortController();
  return { said, ended: endAllPods(inProcessClient(backend), platform, (line) => said.push(line), signal) };
};

test('endAllPods retries a delete that fails because the disk is full', async () => {
  const { said, ended } = await ending(insufficientStorage('the disk is full'));
  await ended;
  expect(said).toEqual([
    'ending default/web (grace 30 s)',
    '  default/web cannot be deleted yet: the disk is full; retrying',
    expect.stringMatching(/^ended default\/web after /),
  ]);
});

test('endAllPods fails if the API refuses a delete permanently', async () => {
  const { ended } = await ending(forbidden(PODS, 'web', 'no'));
  await expect(ended).rejects.toThrow('no');
});

test('removeRest removes all sandboxes from the runtime, running or stopped', async () => {
  const { signal } = new AbortController();
  const runtime = createSimulatedRuntime({ timers: systemTimers(), script: () => ({ stopMillis: 1 }) });
  const sandboxes = ['running', 'stopped'].map((name) =>
    runtime.runSandbox(
      {
        pod: { uid: name, namespace: 'default', name },
        attempt: 0,
        hostname: name,
        logDirectory: '/none',
        labels: {},
        annotations: {},
      },
      signal,
    ),
  );
  const [, stopped] = await Promise.all(sandboxes);
  await runtime.stopSandbox(stopped as string, signal);
  expect(await removeRest(runtime, signal)).toBe(2);
  expect(await runtime.observeAll(signal)).toEqual(new Map());
  expect(await removeRest(runtime, signal)).toBe(0);
});
