/**
 * Pods whose engine is killed repeatedly while they terminate. Each container logs its steps to a folder outside the Pod. At each step, it
 * waits until the test opens a gate, so that the test can kill the engine at a known step.
 */
import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Pod } from '../../src/api/generated/types.ts';
import { dataDirReleased } from '../../src/platform/files.ts';
import type { RunningLifepod } from './lifepod.ts';
import { linesOf, untilLogHas } from './log-file.ts';
import { pod, type ScriptedContainer } from './manifests.ts';
import { type PodRecord, recordPods } from './pods.ts';

const DEADLINE_MILLIS = 60_000;

/** An engine that is killed and restarted, and recordings of its Pods from each of its runs. */
export interface MortalEngine {
  record(): PodRecord;
  seen(name: string): Pod[];
  /**
   * Calls `meanwhile`, which may make requests. When `reached` resolves, kills the engine with SIGKILL, calls `dead` while no engine is
   * running, and restarts the engine.
   */
  killAt(reached: Promise<unknown>, meanwhile?: () => Promise<void>, dead?: () => void): Promise<void>;
  /** Resolves when the Pod's log contains the line `count` times. Uses inotify, so it also works while the engine is down. */
  untilLogged(name: string, line: string, count?: number): Promise<void>;
  end(): void;
}

export async function mortalEngine(lifepod: RunningLifepod): Promise<MortalEngine> {
  let pid = lifepod.pid();
  let record = await recordPods(lifepod);
  const before: PodRecord[] = [];
  return {
    record: () => record,
    seen: (name) => [...before, record].flatMap((each) => each.history(name).map((version) => version.pod)),
    async killAt(reached, meanwhile = async () => undefined, dead = () => undefined) {
      // The engine is killed without waiting for these requests, so `meanwhile` must expect them to fail.
      const asked = meanwhile();
      await reached;
      const released = dataDirReleased(lifepod.dataDir, AbortSignal.timeout(DEADLINE_MILLIS));
      process.kill(pid, 'SIGKILL');
      await Promise.all([released.then(dead), asked]);
      record.end();
      before.push(record);
      await lifepod.up();
      pid = lifepod.pid();
      record = await recordPods(lifepod);
    },
    untilLogged: (name, line, count = 1) => untilLogHas(join(folderOf(lifepod, name), 'log'), line, count),
    end: () => record.end(),
  };
}

const folderOf = ({ dataDir }: RunningLifepod, name: string): string => join(dataDir, 'killed', name);

export const logged = (lifepod: RunningLifepod, name: string): string[] =>
  linesOf(join(folderOf(lifepod, name), 'log'));

const gate = (name: string): string => `until [ -e /work/open-${name} ]; do usleep 10000; done`;
const WORK = { volumeMounts: [{ name: 'work', mountPath: '/work' }] };

const entry = (name: string, work: string, more: object = {}): ScriptedContainer => ({
  name,
  script: `echo begin ${name} >>/work/log; ${work}; echo end ${name} >>/work/log`,
  ...WORK,
  ...more,
});
const failOnce = (wait: string): string =>
  `if [ ! -e /work/failed ]; then ${wait}; echo fail two >>/work/log; touch /work/failed; exit 1; fi`;

export const ENTRIES = ['one', 'two', 'three', 'four'] as const;
export const GRACE_SECONDS = 100;

/** Keeps a Pod in the API after its end, so that a recording that starts later still contains its last status. */
const FINALIZER = 'tests.lifepod.io/recorded';

/** The Pod has four entries, the second of which fails once. `work` returns the script between the two log lines of an entry. */
export function killedPod(lifepod: RunningLifepod, name: string, work: (step: string) => string = gate): object {
  const path = folderOf(lifepod, name);
  mkdirSync(path, { recursive: true });
  appendFileSync(join(path, 'log'), '');
  const app = `trap "echo stop >>/work/log; ${work('app')}; exit 0" TERM; while :; do sleep 3600 & wait $!; done`;
  const hook = `echo hook >>/work/log; ${work('hook')}`;
  const manifest = pod(name, {
    app: [{ name: 'app', script: app, ...WORK, lifecycle: { preStop: { exec: { command: ['sh', '-c', hook] } } } }],
    defer: [
      entry('one', work('one')),
      entry('two', `${failOnce(work('fail'))}; ${work('two')}`, { restartPolicy: 'OnFailure' }),
      entry('three', work('three'), { trigger: 'PostExit' }),
      entry('four', work('four'), { trigger: 'PostExit' }),
    ],
    spec: { terminationGracePeriodSeconds: GRACE_SECONDS, volumes: [{ name: 'work', hostPath: { path } }] },
  });
  return { ...manifest, metadata: { name, finalizers: [FINALIZER] } };
}

export async function removeEnded(lifepod: RunningLifepod, engine: MortalEngine, name: string): Promise<void> {
  await engine.record().until(name, ({ metadata }) => metadata.deletionGracePeriodSeconds === 0);
  const patch = JSON.stringify({ metadata: { finalizers: null } });
  await lifepod.kubectlOk('patch', 'pod', name, '--type=merge', `--patch=${patch}`);
  await engine.record().gone(name);
}

/** The gates stay open, also for containers that start later. */
export function open(lifepod: RunningLifepod, name: string, ...gates: string[]): void {
  for (const each of gates) writeFileSync(join(folderOf(lifepod, name), `open-${each}`), '');
}
