/**
 * The engine that the end-to-end tests of a worker share. Each test gets a namespace of its own, or each file where its tests
 * build on each other: `test` or `testInFileNamespace`, with `lifepod` for kubectl and lifepod in that namespace.
 *
 * Tests that kill, fill, reconfigure or inspect an engine start their own with startLifepod().
 */
import { join } from 'node:path';
import { test as base } from 'vitest';
import { runCommandOk } from '../../src/platform/processes.ts';
import { clientOf, type Lifepod, type RunningLifepod, startLifepod } from './lifepod.ts';
import { type PodRecord, recordPods } from './pods.ts';

export interface NamespacedLifepod extends RunningLifepod {
  namespace: string;
}

/** The client of the test that runs, or of its file. It is undefined before the first test starts. */
export let lifepod: NamespacedLifepod;
/** What the API showed of the Pods and Events of that namespace. */
export let record: PodRecord;

let entered = 0;

async function enterNamespace(engine: Lifepod): Promise<NamespacedLifepod> {
  const namespace = `test-${process.pid}-${entered++}`;
  const kubeconfig = join(engine.dataDir, `${namespace}.kubeconfig`);
  await engine.kubectlOk('create', 'namespace', namespace);
  const { options, pid, kill } = engine;
  lifepod = {
    ...clientOf(engine.dataDir, kubeconfig, namespace),
    namespace,
    options,
    pid,
    kill,
    async up() {
      await engine.up();
      record.end();
      await connect();
    },
  };
  // An engine that starts again may listen on another port.
  const connect = async (): Promise<void> => {
    await runCommandOk('cp', [engine.kubeconfig, kubeconfig]);
    await lifepod.kubectlOk('config', 'set-context', '--current', '--namespace', namespace);
    record = await recordPods(lifepod, namespace);
  };
  await connect();
  return lifepod;
}

/** The Pods end while the next test runs; `lifepod down` fails where one does not. */
const leave = async (engine: Lifepod, { namespace }: NamespacedLifepod): Promise<void> => {
  record.end();
  await engine.kubectlOk('delete', 'namespace', namespace, '--wait=false');
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
