/**
 * The engine that all end-to-end tests of one Vitest worker share. `test` defines a test with a namespace of its own. `testInFileNamespace`
 * defines tests that share the namespace of their file, because they run concurrently or build on each other.
 *
 * Tests that fill, reconfigure or inspect an engine, or need the namespace `default`, have their own engine (own-engine.ts). A test may
 * kill the shared engine if it starts it again, because the files of a worker run one after the other.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test as base } from 'vitest';
import { parseDocument } from 'yaml';
import type { Namespace } from '../../src/api/generated/types.ts';
import { NAMESPACES } from '../../src/api/resources.ts';
import { clientFromKubeconfig } from '../../src/client/kubeconfig.ts';
import { clientOf, type Lifepod, type RunningLifepod, startLifepod } from './lifepod.ts';
import { type PodRecord, recordPods } from './pods.ts';

export interface NamespacedLifepod extends RunningLifepod {
  namespace: string;
}

/** The client for the namespace of the running test or of its file. Undefined before the first test starts. */
export let lifepod: NamespacedLifepod;
export let record: PodRecord;

let entered = 0;

async function enterNamespace(engine: Lifepod): Promise<NamespacedLifepod> {
  const namespace = `test-${process.pid}-${entered++}`;
  const kubeconfig = join(engine.dataDir, `${namespace}.kubeconfig`);
  const namespaces = (await clientFromKubeconfig(engine.kubeconfig)).resource<Namespace>(NAMESPACES);
  await namespaces.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
  const { options, pid, kill } = engine;
  lifepod = {
    ...clientOf(engine.dataDir, kubeconfig, namespace),
    namespace,
    options,
    pid,
    kill,
    async up(again) {
      await engine.up(again);
      record.end();
      await connect();
    },
  };
  // After a restart, the engine may listen on another port, so its kubeconfig is read again.
  const connect = async (): Promise<void> => {
    const config = parseDocument(readFileSync(engine.kubeconfig, 'utf8'));
    config.setIn(['contexts', 0, 'context', 'namespace'], namespace);
    writeFileSync(kubeconfig, config.toString(), { mode: 0o600 });
    record = await recordPods(lifepod, namespace);
  };
  await connect();
  return lifepod;
}

/** Does not wait: the Pods of the namespace end while the next test runs. If a Pod does not end, `lifepod down` fails later. */
const leave = async (engine: Lifepod, { namespace }: NamespacedLifepod): Promise<void> => {
  record.end();
  const client = await clientFromKubeconfig(engine.kubeconfig);
  await client.resource(NAMESPACES).delete(namespace);
};

// biome-ignore lint/correctness/noEmptyPattern: vitest reads the names of other fixtures from this pattern
const engineTest = base.extend('engine', { scope: 'worker' }, async ({}, { onCleanup }) => {
  const engine = await startLifepod();
  onCleanup(() => engine.stop());
  return engine;
});

export const test = engineTest.extend('namespaced', { auto: true }, async ({ engine }, { onCleanup }) => {
  const entered = await enterNamespace(engine);
  onCleanup(() => leave(engine, entered));
  return entered;
});

export const testInFileNamespace = engineTest.extend(
  'namespaced',
  { scope: 'file', auto: true },
  async ({ engine }, { onCleanup }) => {
    const entered = await enterNamespace(engine);
    onCleanup(() => leave(engine, entered));
    return entered;
  },
);
