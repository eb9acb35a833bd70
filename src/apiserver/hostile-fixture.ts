import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openLmdbStore } from '../store/lmdb/lmdb-store.ts';
import { type Started, startRegistry } from './registry/testing.ts';
import { type Answer, startTestServer, type TestServer } from './server-fixture.ts';

/** The limit on `othersWaited` in most tests: about ten times the longest delay that was measured. */
export const OTHERS_WAIT_MILLIS = 1000;

/** Just below the limit on a request body, in bytes. */
export const LARGE = 2_900_000;

export const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps';
export const PODS = '/api/v1/namespaces/default/pods';

export const repeatUpTo = (length: number, line: (index: number) => string): string => {
  const lines: string[] = [];
  for (let bytes = 0; bytes < length; bytes += lines.at(-1)?.length ?? 0) lines.push(line(lines.length));
  return lines.join('');
};

export async function startHostileServer(): Promise<TestServer & Pick<Started, 'registry'>> {
  const directory = mkdtempSync(join(tmpdir(), 'lifepod-hostile-'));
  const store = await openLmdbStore({ directory, historyRevisions: 1000 });
  const { registry, backend } = await startRegistry({ store });
  const at = await startTestServer({ backend });
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
 * Sends requests of another client, one after another, until the response of `request` arrives. `othersWaited`: the longest time of such a
 * request, in milliseconds of CPU time of this thread, so that other load on the machine does not count.
 */
export async function whileServingOthers(
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
  const response = await request().finally(() => {
    over = true;
  });
  await others;
  return { ...response, othersWaited };
}
