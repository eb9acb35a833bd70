import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { withInformers } from '../../src/client/registry-fixture.ts';
import { clientOf } from '../../src/client/typed-client.ts';
import { startNodeAgent } from '../../src/node/agent.ts';
import { readCapacity } from '../../src/node/status/machine-facts.ts';
import { systemTimers } from '../../src/platform/node-js.ts';
import type { ResourceApi } from '../../src/ports/backend.ts';
import type { PodObservation } from '../../src/runtime/runtime.ts';
import { BUSYBOX, quiet, type RealRuntime, startRealRuntime } from './containerd-fixture.ts';

let real: RealRuntime;
beforeAll(async () => {
  real = await startRealRuntime();
});
afterAll(() => real?.close());

/** The promises of this backend never settle. */
const silent = new Proxy({} as ResourceApi, { get: () => () => new Promise(() => {}) });

test('a static Pod runs without the API, and ends when its file is removed', async () => {
  const { runtime, where } = real;
  const stop = new AbortController();
  const signal = AbortSignal.any([stop.signal, AbortSignal.timeout(60_000)]);
  const manifests = join(where.dataDir, 'manifests');
  mkdirSync(manifests, { recursive: true });
  const script = 'trap "echo ending; exit 7" TERM; while :; do sleep 3600 & wait $!; done';
  const container = { name: 'app', image: BUSYBOX, command: ['sh', '-c', script] };
  const first = { name: 'first', image: BUSYBOX, command: ['sh', '-c', 'true'] };
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web' } };
  writeFileSync(
    join(manifests, 'web.yaml'),
    JSON.stringify({ ...pod, spec: { initContainers: [first], containers: [container] } }),
  );

  let changed = Promise.withResolvers<void>();
  /** The runtime sends no events for starts and removals, so this wrapper notifies the test of them. */
  const watched: typeof runtime = {
    ...runtime,
    async startContainer(...call) {
      await runtime.startContainer(...call);
      changed.resolve();
    },
    async removeSandbox(...call) {
      await runtime.removeSandbox(...call);
      changed.resolve();
    },
  };
  const events = runtime.events(() => changed.resolve(), signal);
  const until = async (met: (seen: PodObservation[]) => boolean): Promise<PodObservation[]> => {
    for (;;) {
      changed = Promise.withResolvers<void>();
      const seen = [...(await runtime.observeAll(signal)).values()];
      if (met(seen)) return seen;
      await Promise.race([changed.promise, events]);
      signal.throwIfAborted();
    }
  };

  let agent: Awaited<ReturnType<typeof startNodeAgent>> | undefined;
  void startNodeAgent(
    withInformers({
      timers: systemTimers(),
      log: quiet,
      client: clientOf(silent),
      runtime: watched,
      runtimeName: 'containerd',
      nodeName: 'node-1',
      nodeIps: [where.gateway],
      dataDir: where.dataDir,
      capacity: await readCapacity({ folder: where.dataDir }),
      clusterDns: [],
      clusterDomain: 'cluster.local',
      signal,
    }),
  ).then(
    (started) => {
      agent = started;
    },
    // The end of the test aborts the start, which still waits for the API.
    () => undefined,
  );
  try {
    const [seen] = await until(
      ([each]) => each?.containers.some((run) => run.name === 'app' && run.state === 'running') ?? false,
    );
    expect(seen?.containers).toContainEqual(expect.objectContaining({ name: 'first', state: 'exited', exitCode: 0 }));
    expect(seen?.sandboxes).toMatchObject([{ name: 'web-node-1', namespace: 'default', ready: true }]);
    expect(agent).toBeUndefined();

    rmSync(join(manifests, 'web.yaml'));
    await until((all) => all.every(({ sandboxes, containers }) => sandboxes.length + containers.length === 0));
  } finally {
    stop.abort();
    await events;
  }
});
