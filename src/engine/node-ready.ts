/** Waits at the start of the engine until the node is Ready, and reports why the node is not Ready yet. */

import type { Node } from '../api/generated/types.ts';
import { NODES } from '../api/resources.ts';
import type { Client } from '../client/client.ts';
import type { Millis } from '../machinery/time.ts';
import type { Timers } from '../platform/platform.ts';
import { asRoot } from '../platform/programs/typed-program.ts';

const SAID_AFTER_MILLIS: Millis = 5_000;

/** Returns patterns for the message of the condition Ready, each with what to do. `load` is the command that imports an image. */
const remediesWith = (load: string): readonly [RegExp, string][] => [
  [
    /cni (plugin|config)|NetworkPluginNotReady/i,
    'write a CNI configuration to the folder that the runtime reads, by default /etc/cni/net.d: README has an example in the section "On a machine\'s own runtime"',
  ],
  [
    /pulls its sandbox image/,
    `if the runtime cannot reach the image's registry, load the image (containerd: '${load}')`,
  ],
  [/no sandbox image/, `load the image (containerd: '${load}'), or configure another sandbox image in the runtime`],
];

/** Removes the source ports of connections, such as queries to a DNS server: they would make each text differ from the previous one. */
const withoutPorts = (text: string): string => text.replaceAll(/:\d+->/g, '->');

/** Called with each reason why the start takes long. */
export type Waiting = (why: string) => void;

export interface StartReports {
  waiting: Waiting;
  /** Called when the API server listens, the system objects exist, and the kubeconfig is written. */
  listening(): void;
  /** Called when the engine has locked the data folder. */
  locked?(): void;
  /** Called when `lifepod down` begins to end the workloads, and when it is interrupted, so that they run again. */
  ending?(isEnding: boolean): void;
}

interface ReadyOptions {
  client: Pick<Client, 'resource'>;
  timers: Timers;
  signal: AbortSignal;
  waiting: Waiting;
}

/**
 * Resolves when the Node is Ready. Rejects when `signal` aborts. Calls `waiting` with the reason why the Node is not Ready: first after 5
 * s, then whenever the reason changes.
 */
export async function nodeReady(name: string, { client, timers, signal, waiting }: ReadyOptions): Promise<void> {
  const enough = new AbortController();
  let why = 'the node has not reported yet';
  let said: string | undefined;
  let isLate = false;
  const say = (): void => {
    if (!isLate || withoutPorts(why) === said) return;
    said = withoutPorts(why);
    waiting(why);
  };
  const timer = timers.at(timers.now() + SAID_AFTER_MILLIS, () => {
    isLate = true;
    say();
  });
  try {
    await client.resource<Node>(NODES).watch(
      { fieldSelector: `metadata.name=${name}` },
      (event) => {
        if (event.type === 'ERROR') return;
        const ready = event.object.status?.conditions?.find(({ type }) => type === 'Ready');
        if (ready?.status === 'True') enough.abort();
        else if (ready?.message !== undefined) {
          why = withRemedy(ready.message);
          say();
        }
      },
      AbortSignal.any([signal, enough.signal]),
    );
  } finally {
    timer.cancel();
  }
  signal.throwIfAborted();
}

export function withRemedy(message: string, env: NodeJS.ProcessEnv = process.env): string {
  const load = asRoot('ctr -n k8s.io images import FILE', env);
  const remedy = remediesWith(load).find(([part]) => part.test(message))?.[1];
  return remedy === undefined ? message : `${message}; ${remedy}`;
}
