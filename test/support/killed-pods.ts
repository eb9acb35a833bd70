/**
 * Pods that end while their engine is killed again and again: each container writes into a log outside the Pod what it does,
 * and waits at gates that the test opens, so that no step is passed before the engine has been killed at it.
 */
import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Pod } from '../../src/api/generated/types.ts';
import { dataDirReleased } from '../../src/platform/files.ts';
import type { Lifepod } from './lifepod.ts';
import { linesOf, untilLogHas } from './log-file.ts';
import { pod, type ScriptedContainer } from './manifests.ts';
import { type PodRecord, recordPods } from './pods.ts';

const DEADLINE_MILLIS = 60_000;

/** An engine, and what was heard of its Pods through all its lives. */
export interface MortalEngine {
  record(): PodRecord;
  /** Every version of the Pod that was seen, by all records. */
  seen(name: string): Pod[];
  /** kill -9 the moment that the promise resolves, then starts it again; `dead` is called between the two. */
  killAt(reached: Promise<unknown>, meanwhile?: () => Promise<void>, dead?: () => void): Promise<void>;
  /** Once there are so many such lines in the Pod's log; told of by the kernel, whether or not the engine lives. */
  untilLogged(name: string, line: string, count?: number): Promise<void>;
  end(): void;
}

export async function mortalEngine(lifepod: Lifepod): Promise<MortalEngine> {
  let pid = lifepod.pid();
  let record = await recordPods(lifepod);
  const before: PodRecord[] = [];
  return {
    record: () => record,
    seen: (name) => [...before, record].flatMap((each) => each.history(name).map((version) => version.pod)),
    async killAt(reached, meanwhile = async () => undefined, dead = () => undefined) {
      // What is asked of the engine now may find it dead.
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

const folderOf = ({ dataDir }: Lifepod, name: string): string => join(dataDir, 'killed', name);

export const logged = (lifepod: Lifepod, name: string): string[] => linesOf(join(folderOf(lifepod, name), 'log'));

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

/** Four entries, the second of which fails once. `work`: what a container does between its two lines. */
export function killedPod(lifepod: Lifepod, name: string, work: (step: string) => string = gate): object {
  const path = folderOf(lifepod, name);
  mkdirSync(path, { recursive: true });
  appendFileSync(join(path, 'log'), '');
  const app = `trap "echo stop >>/work/log; ${work('app')}; exit 0" TERM; while :; do sleep 3600 & wait $!; done`;
  const hook = `echo hook >>/work/log; ${work('hook')}`;
  return pod(name, {
    app: [{ name: 'app', script: app, ...WORK, lifecycle: { preStop: { exec: { command: ['sh', '-c', hook] } } } }],
    defer: [
      entry('one', work('one')),
      entry('two', `${failOnce(work('fail'))}; ${work('two')}`, { restartPolicy: 'OnFailure' }),
      entry('three', work('three'), { trigger: 'PostExit' }),
      entry('four', work('four'), { trigger: 'PostExit' }),
    ],
    spec: { terminationGracePeriodSeconds: GRACE_SECONDS, volumes: [{ name: 'work', hostPath: { path } }] },
  });
}

/** Lets the Pod's containers past the gates, now and later. */
export function open(lifepod: Lifepod, name: string, ...gates: string[]): void {
  for (const each of gates) writeFileSync(join(folderOf(lifepod, name), `open-${each}`), '');
}
