/** Prints the logs of the Pods of a session. Each line may have a prefix with the names of its Pod and container. */
import type { Pod } from '../../api/generated/types.ts';
import { PODS } from '../../api/resources.ts';
import type { HttpClient } from '../../client/http-client.ts';
import { resourcePath } from '../../client/paths.ts';
import { failureText } from '../failures.ts';
import { copyLog } from '../logs/copy-log.ts';
import { followPod } from '../logs/follow-pod.ts';
import { logQuery } from '../logs/log-options.ts';
import { colored, createTimedLines } from '../logs/merged-lines.ts';
import type { PodContainer } from '../pod-containers.ts';

export interface LogFormat {
  hasPrefix: boolean;
  hasColors: boolean;
  hasNamespace: boolean;
}

export interface SessionLogs {
  /**
   * Prints the logs of all containers of the Pod until the Pod has ended, unless the Pod is already followed. Resolves when the logs have
   * ended.
   */
  follow(pod: Pod): Promise<void>;
  ended(): Promise<void>;
}

const FOLLOWED = { follow: true, previous: false, timestamps: true, part: {} };

/** Returns a function that returns the prefix for the lines of a container. Each call uses the next color. */
export function createPrefixes({
  hasPrefix,
  hasColors,
  hasNamespace,
}: LogFormat): (pod: Pod, container: string) => string {
  let containers = 0;
  return ({ metadata: { namespace, name } }, container) => {
    if (!hasPrefix) return '';
    const text = `${hasNamespace ? `${namespace}/` : ''}${name}/${container} | `;
    return hasColors ? colored(text, containers++) : text;
  };
}

/** Returns functions that print the logs of Pods until `signal` aborts. `complain` gets a line about each log that cannot be read. */
export function createSessionLogs(
  client: HttpClient,
  format: LogFormat,
  complain: (line: string) => void,
  signal: AbortSignal,
): SessionLogs {
  const prefixOf = createPrefixes(format);
  const following = new Map<string, Promise<void>>();

  const printer = (pod: Pod): ((container: PodContainer) => Promise<void>) => {
    const { name, namespace } = pod.metadata;
    const lines = new Map<string, ReturnType<typeof createTimedLines>>();
    return async ({ name: container }) => {
      const format = lines.get(container) ?? createTimedLines({ prefix: prefixOf(pod, container), timestamps: false });
      lines.set(container, format);
      try {
        const path = resourcePath(PODS, namespace, name, 'log') + logQuery(container, FOLLOWED);
        await copyLog(await client.open(path, signal), format.begin(), signal);
      } catch (error) {
        // An error about the log of one container must not stop the logs of the others.
        if (!signal.aborted) complain(`the log of ${name}/${container} cannot be read: ${failureText(error)}`);
      }
    };
  };

  return {
    follow(pod) {
      const uid = pod.metadata.uid ?? '';
      const known = following.get(uid);
      if (known !== undefined) return known;
      const ports = { pods: client.resource<Pod>(PODS), print: printer(pod), waiting: () => undefined };
      const ended = followPod(pod, undefined, ports, signal).then(
        () => undefined,
        (error: unknown) => {
          if (!signal.aborted) complain(`the logs of ${pod.metadata.name} cannot be followed: ${failureText(error)}`);
        },
      );
      following.set(uid, ended);
      return ended;
    },
    async ended() {
      // Another Pod may appear during the wait.
      for (let known = 0; known < following.size; ) {
        known = following.size;
        await Promise.all(following.values());
      }
    },
  };
}
