/**
 * Turns what the runtime shows of a Pod into what the core is given, and the records of a Pod whose object is gone
 * into a Pod that can be ended.
 */
import type { Container, Pod } from '../api/generated/types.ts';
import type { ContainerState } from '../lifecycle/types.ts';
import type { ContainerObservation, PodObservation } from '../runtime/runtime.ts';
import { BACKOFF_ANNOTATION } from './container-config.ts';
import type { RuntimeView } from './worker.ts';

/** `messageOf` reads the termination message of an ended run; it is asked once a run. */
export function runtimeView(
  seen: PodObservation,
  messageOf: (run: ContainerObservation) => string | undefined,
): RuntimeView {
  return {
    sandboxes: seen.sandboxes.map(({ id, attempt, ready, createdAt, ips }) => ({ id, attempt, ready, createdAt, ips })),
    containers: seen.containers.map((run): ContainerState => {
      const message = run.state === 'exited' ? messageOf(run) : undefined;
      return {
        ...run,
        backoffSeconds: Number(run.annotations[BACKOFF_ANNOTATION] ?? 0),
        message: message || run.message,
      };
    }),
  };
}

/** A Pod that the runtime has and the API does not know: enough of it to stop and remove what there is. */
export function podFromRecords(uid: string, seen: PodObservation): Pod {
  const first = seen.sandboxes[0];
  const named = new Map<string, Container>(
    seen.containers.map((run) => [run.name, { name: run.name, image: run.image }]),
  );
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: first?.name ?? uid, namespace: first?.namespace ?? '', uid },
    spec: { containers: [...named.values()], restartPolicy: 'Never' },
  };
}
