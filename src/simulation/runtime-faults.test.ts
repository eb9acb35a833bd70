/** Tests the faults that the simulated runtime can simulate, so that the lives in this folder can rely on them. */

import { expect, it } from 'vitest';
import { createVirtualTimers } from '../platform/virtual-timers.ts';
import { OutcomeUnknownError, type RuntimeEvent } from '../runtime/runtime.ts';
import { createSimulatedRuntime, type RunScript } from '../runtime/simulated/simulated-runtime.ts';

const START = 1_700_000_000_000;
const LATENCY_MILLIS = 5;
const never = new AbortController().signal;
const identity = { uid: 'uid', namespace: 'default', name: 'pod' };

async function started(scripts: Record<string, RunScript>) {
  const timers = createVirtualTimers(START);
  const runtime = createSimulatedRuntime({
    timers,
    script: ({ name }) => scripts[name] ?? {},
    latencyMillis: () => LATENCY_MILLIS,
  });
  const events: string[] = [];
  void runtime.events((event: RuntimeEvent) => void events.push(event.type), never);
  /** Lets time pass until the call has ended, and settles like the call. */
  const settled = async <T>(call: Promise<T>): Promise<T> => {
    let ended = false;
    const mark = (): void => {
      ended = true;
    };
    void call.then(mark, mark);
    await timers.run(() => ended, timers.now() + 3_600_000);
    return call;
  };
  const pass = (millis: number): Promise<boolean> => timers.run(() => false, timers.now() + millis);
  const sandbox = { pod: identity, attempt: 0, hostname: 'pod', logDirectory: '/', labels: {}, annotations: {} };
  const sandboxId = await settled(runtime.runSandbox(sandbox, never));
  const create = (name: string): Promise<string> => {
    const config = {
      pod: identity,
      name,
      kind: 'app',
      attempt: 0,
      imageId: 'i',
      imageName: 'i',
      logPath: 'l',
    } as const;
    const empty = { env: [], mounts: [], annotations: {}, resources: {}, security: {} };
    return settled(runtime.createContainer(sandboxId, sandbox, { ...config, ...empty }, never));
  };
  const start = async (name: string): Promise<string> => {
    const id = await create(name);
    await settled(runtime.startContainer(id, never));
    return id;
  };
  const states = async (): Promise<string[]> => {
    const { containers } = await settled(runtime.observe(identity.uid, never));
    return containers.map(({ name, state }) => `${name} ${state}`);
  };
  return { timers, runtime, events, settled, pass, sandboxId, create, start, states };
}

it.each([true, false])(
  'a call under way when the runtime goes away has an unknown outcome, whether or not it takes effect: %s',
  async (takesEffect) => {
    const { runtime, settled, pass, create, states } = await started({});
    const id = await create('app');
    const call = runtime.startContainer(id, never);
    runtime.goAway({ millis: 1000, takesEffect });
    await expect(settled(call)).rejects.toThrow(OutcomeUnknownError);
    await pass(1001);
    expect(await states()).toEqual([takesEffect ? 'app running' : 'app created']);
  },
);

it('a call to a runtime that is away has an unknown outcome and no effect', async () => {
  const { runtime, settled, pass, create, states } = await started({});
  const id = await create('app');
  runtime.goAway({ millis: 1000 });
  await expect(settled(runtime.startContainer(id, never))).rejects.toThrow(OutcomeUnknownError);
  await expect(settled(runtime.observe('uid', never))).rejects.toThrow(OutcomeUnknownError);
  await pass(1000);
  expect(await states()).toEqual(['app created']);
});

it('containers continue while the runtime is away, without events, and a resync follows', async () => {
  const { runtime, pass, start, states, events } = await started({ app: { runMillis: 500 } });
  await start('app');
  events.length = 0;
  runtime.goAway({ millis: 1000 });
  await pass(999);
  expect(events).toEqual([]);
  expect(runtime.trace.at(-1)).toMatchObject({ what: 'exit', name: 'app' });
  await pass(1);
  expect(events).toEqual(['resync']);
  expect(await states()).toEqual(['app exited']);
});

it('a stop that was under way when the runtime went away kills no container', async () => {
  const { runtime, settled, pass, start, states } = await started({});
  const stop = runtime.stopContainer(await start('app'), 10, never);
  await pass(100);
  runtime.goAway({ millis: 60_000, takesEffect: true });
  await expect(settled(stop)).rejects.toThrow(OutcomeUnknownError);
  await pass(60_000);
  expect(runtime.trace.at(-1)?.what).toBe('signal');
  expect(await states()).toEqual(['app running']);
});

it('the removal of a sandbox with a damaged record succeeds without effect until the damage is repaired', async () => {
  const { runtime, settled, pass, start, states, sandboxId } = await started({ app: { runMillis: 1 }, other: {} });
  const id = await start('app');
  await start('other');
  await pass(10);
  runtime.damageRecords('uid', ['app'], 1000);
  await settled(runtime.removeSandbox(sandboxId, never));
  await settled(runtime.removeContainer(id, never));
  expect(await states()).toEqual(['app exited', 'other exited']);
  await pass(1000);
  await settled(runtime.removeSandbox(sandboxId, never));
  expect(await states()).toEqual([]);
});

it('a container that vanishes is killed and leaves no record; only records of exited containers are lost', async () => {
  const { runtime, pass, start, states } = await started({ app: {}, init: { runMillis: 1 } });
  await start('init');
  await start('app');
  await pass(10);
  runtime.loseRecords('uid', ['init', 'app']);
  expect(await states()).toEqual(['app running']);
  runtime.vanish('uid', ['app']);
  expect(await states()).toEqual([]);
  expect(runtime.trace.findLast(({ what }) => what === 'exit')).toMatchObject({ exitCode: 137, cause: 'outside' });
});

it('a reboot ends every process with an unknown exit code, and the sandbox', async () => {
  const { runtime, settled, start } = await started({});
  await start('app');
  runtime.reboot();
  const { sandboxes, containers } = await settled(runtime.observe('uid', never));
  expect(sandboxes).toMatchObject([{ ready: false }]);
  expect(containers).toMatchObject([{ state: 'exited', exitCode: 255, reason: 'Unknown' }]);
});
