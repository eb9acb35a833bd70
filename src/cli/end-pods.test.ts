import { expect, test } from 'vitest';
import { systemTimers } from '../platform/node.ts';
import { createSimulatedRuntime } from '../runtime/simulated/simulated-runtime.ts';
import { removeRest } from './end-pods.ts';

test('what the runtime still has of Pods goes, also where nothing of it runs', async () => {
  const { signal } = new AbortController();
  const runtime = createSimulatedRuntime({ timers: systemTimers(), script: () => ({ stopMillis: 1 }) });
  const sandboxes = ['running', 'stopped'].map((name) =>
    runtime.runSandbox(
      {
        pod: { uid: name, namespace: 'default', name },
        ...{ attempt: 0, hostname: name, logDirectory: '/none', labels: {}, annotations: {} },
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
