/**
 * Pods with defer containers for end-to-end tests. Each entry writes "begin NAME" and "end NAME" to a log. Between these lines, it may wait
 * for a gate, a file that the test creates. The log is in a folder of the node that outlives the Pod and is mounted at /work.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Pod } from '../../src/api/generated/types.ts';
import { ctr } from './containerd.ts';
import type { RunningLifepod } from './lifepod.ts';
import { linesOf, untilLogHas } from './log-file.ts';
import { pod, type ScriptedContainer } from './manifests.ts';

const WORK = { volumeMounts: [{ name: 'work', mountPath: '/work' }] };

export const gate = (name: string): string => `until [ -e /work/open-${name} ]; do usleep 20000; done`;

/** Returns an entry that runs `script` between its two lines in the log. */
export const entry = (name: string, script = ':', more: object = {}): ScriptedContainer => ({
  name,
  script: `echo begin ${name} >>/work/log; ${script}; echo end ${name} >>/work/log`,
  ...WORK,
  ...more,
});
export const POST = { trigger: 'PostExit' };

export const TELLING: ScriptedContainer = {
  name: 'app',
  script: 'trap "echo app stops >>/work/log; exit 0" TERM; while :; do sleep 3600 & wait $!; done',
  ...WORK,
};

const folder = ({ dataDir }: RunningLifepod, name: string): string => join(dataDir, 'outliving', name);

type DropFirst<T extends unknown[]> = T extends [unknown, ...infer Rest] ? Rest : never;
export type DeferPodArguments = DropFirst<Parameters<typeof deferPod>>;

export function deferPod(
  lifepod: RunningLifepod,
  name: string,
  defer: ScriptedContainer[],
  more: { app?: ScriptedContainer[]; spec?: Record<string, unknown> } = {},
): Record<string, unknown> {
  const path = folder(lifepod, name);
  mkdirSync(path, { recursive: true });
  writeFileSync(join(path, 'log'), '');
  const { volumes = [], ...spec } = more.spec ?? {};
  const all = [{ name: 'work', hostPath: { path } }, ...(volumes as object[])];
  return pod(name, { app: more.app ?? [TELLING], defer, spec: { volumes: all, ...spec } });
}

export const logOf = (lifepod: RunningLifepod, name: string): string[] => linesOf(join(folder(lifepod, name), 'log'));
export const untilLogged = (lifepod: RunningLifepod, name: string, line: string, count = 1): Promise<void> =>
  untilLogHas(join(folder(lifepod, name), 'log'), line, count);

export function openGate(lifepod: RunningLifepod, name: string, ...gates: string[]): void {
  for (const each of gates) writeFileSync(join(folder(lifepod, name), `open-${each}`), '');
}

/** Makes the Pod lose its sandbox by killing the sandbox's pause process. */
export async function killPause(lifepod: RunningLifepod, { metadata }: Pod): Promise<void> {
  const sandbox = `labels."io.kubernetes.pod.uid"==${metadata.uid},labels."io.cri-containerd.kind"==sandbox`;
  const id = (await ctr(lifepod, 'containers', 'ls', '-q', sandbox)).trim();
  const pid = Number(new RegExp(`^${id} +(\\d+) `, 'm').exec(await ctr(lifepod, 'tasks', 'ls'))?.[1]);
  if (!readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('pause'))
    throw new Error(`process ${pid} is not the pause process of a sandbox`);
  process.kill(pid, 'SIGKILL');
}
