/**
 * A fleet: many Pods with defer containers that a test starts, deletes and examines together. The engine may be restarted between these
 * steps. The log of each Pod (see defer-pods.ts) shows which steps ran.
 */

import type { PodRecord, PodTransition } from '../../src/api/generated/types.ts';
import { PODS } from '../../src/api/resources.ts';
import { clientFromKubeconfig } from '../../src/client/kubeconfig.ts';
import { logOf, untilLogged } from './defer-pods.ts';
import type { RunningLifepod } from './lifepod.ts';

const PATIENCE = '--timeout=120s';

export interface EntryEnd {
  type: string;
  exitCode?: number;
  reason?: string;
  message?: string;
}

export interface Fleet {
  namespace: string;
  names: string[];
  /** Creates the Pods that `make` returns, and resolves when all are Ready. */
  start(make: (name: string, index: number) => Record<string, unknown>): Promise<void>;
  /** Deletes the named Pods (by default all) at the same time, over connections that are already open. */
  delete(names?: readonly string[]): Promise<void>;
  /** Resolves when the log of each named Pod (by default all) has the line. */
  untilLogged(line: string, names?: readonly string[]): Promise<void>;
  /** Deletes the named Pods (by default all) that still exist, and resolves when none of them exists in the API. */
  gone(names?: readonly string[]): Promise<void>;
  log(name: string): string[];
  /** Resolves with the transitions by Pod when all PodRecords contain the transition Gone. */
  lives(): Promise<Map<string, PodTransition[]>>;
  /** By Pod and entry. */
  ends(): Promise<Map<string, Record<string, EntryEnd>>>;
  /** Resolves with a line for each Pod for which `isRight` returns false, with the Pod's log and the ends of its entries. */
  problems(isRight: (log: readonly string[], ends: Record<string, EntryEnd>) => boolean): Promise<string[]>;
}

/** Creates the namespace. The names of the Pods begin with the name of the namespace. */
export async function fleet(lifepod: RunningLifepod, namespace: string, size: number): Promise<Fleet> {
  await lifepod.kubectlOk('create', 'namespace', namespace);
  const names = Array.from({ length: size }, (_, index) => `${namespace}-${index}`);
  const self: Fleet = {
    namespace,
    names,
    async start(make) {
      const items = names.map((name, index) => inNamespace(make(name, index), namespace));
      await lifepod.apply({ apiVersion: 'v1', kind: 'List', items });
      await lifepod.kubectlOk('wait', '-n', namespace, 'pods', '--all', '--for=condition=Ready', PATIENCE);
    },
    async delete(some = names) {
      const pods = (await clientFromKubeconfig(lifepod.kubeconfig)).resource(PODS);
      await Promise.all(some.map((name) => pods.delete(name, namespace)));
    },
    async untilLogged(line, some = names) {
      await Promise.all(some.map((name) => untilLogged(lifepod, name, line)));
    },
    async gone(some = names) {
      await lifepod.kubectlOk('delete', 'pod', '-n', namespace, ...some, '--ignore-not-found', PATIENCE);
    },
    log: (name) => logOf(lifepod, name),
    async lives() {
      const lives = new Map<string, PodTransition[]>();
      const steps = 'jsonpath={.podName} {.transitions[*].type}{"\\n"}';
      const ended = new Set<string>();
      await lifepod.until(['get', 'podrecords', '-n', namespace, '-w', '-o', steps], (line) => {
        const [name = '', ...types] = line.split(' ');
        if (types.includes('Gone')) ended.add(name);
        return ended.size === size;
      });
      const { items } = await lifepod.get<{ items: PodRecord[] }>('podrecords', '-n', namespace);
      for (const { podName, transitions } of items) lives.set(podName, [...(lives.get(podName) ?? []), ...transitions]);
      return lives;
    },
    async ends() {
      const lives = [...(await self.lives())];
      return new Map(lives.map(([name, steps]) => [name, endsOf(steps)]));
    },
    async problems(isRight) {
      const ends = await self.ends();
      return names.flatMap((name) => {
        const [log, own] = [self.log(name), ends.get(name) ?? {}];
        return isRight(log, own) ? [] : [`${name}: ${log.join(', ')}; ${JSON.stringify(own)}`];
      });
    },
  };
  return self;
}

export const inNamespace = (
  { metadata, ...rest }: Record<string, unknown>,
  namespace: string,
): Record<string, unknown> => ({ ...rest, metadata: { ...(metadata as object), namespace } });

function endsOf(steps: readonly PodTransition[]): Record<string, EntryEnd> {
  const ends: Record<string, EntryEnd> = {};
  for (const { container = '', type, exitCode, reason, message } of steps)
    if (type === 'DeferEnded' || type === 'DeferSkipped') ends[container] = { type, exitCode, reason, message };
  return ends;
}
