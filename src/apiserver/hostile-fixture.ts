/** For the tests of requests that are made to hurt: a server on a real registry and store, and how long others wait meanwhile. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { kinds } from '../api/kinds.ts';
import { openLmdbStore } from '../store/lmdb/lmdb-store.ts';
import type { Registry } from './registry/registry.ts';
import { startRegistry } from './registry/testing.ts';
import { type Answer, startTestServer, type TestServer } from './server-fixture.ts';

/** Ten times what the slowest of these requests holds others up. */
export const OTHERS_WAIT_MILLIS = 1000;

export const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps';
export const PODS = '/api/v1/namespaces/default/pods';

export async function startHostileServer(): Promise<TestServer & { registry: Registry }> {
  const directory = mkdtempSync(join(tmpdir(), 'lifepod-hostile-'));
  const store = await openLmdbStore({ directory, historyRevisions: 1000 });
  const { registry } = await startRegistry({ store });
  const at = await startTestServer({ backend: registry, kinds });
  const dispose = at[Symbol.asyncDispose].bind(at);
  return {
    ...at,
    registry,
    async [Symbol.asyncDispose]() {
      await dispose();
      registry.close();
      await store.close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/**
 * Sends the request, and meanwhile requests of another client, one after the other. Returns the answer and the longest time
 * that one of the others took, in milliseconds of this thread's CPU time: so other work of the machine does not count.
 */
export async function whileOthersAsk(
  at: TestServer,
  request: () => Promise<Answer>,
): Promise<Answer & { othersWaited: number }> {
  await at.call('GET', '/healthz', { agent: at.anonymous });
  let over = false;
  let othersWaited = 0;
  const others = (async () => {
    while (!over) {
      const cpuBefore = process.threadCpuUsage();
      await at.call('GET', '/healthz', { agent: at.anonymous });
      const { user, system } = process.threadCpuUsage(cpuBefore);
      othersWaited = Math.max(othersWaited, (user + system) / 1000);
    }
  })();
  const answer = await request().finally(() => {
    over = true;
  });
  await others;
  return { ...answer, othersWaited };
}
