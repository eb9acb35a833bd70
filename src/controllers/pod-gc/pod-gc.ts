/**
 * Deletes Pods whose node is no more: nobody is left to end them.
 *
 * Reads: nodes, pods. Writes: pods (delete, without a grace period).
 * Source: upstream's podgc, orphaned Pods (behaviour; a node may come back within 40 s).
 */
import type { Node, Pod } from '../../api/generated/types.ts';
import { createInformer } from '../../client/informer.ts';
import { createWorkQueue } from '../../client/work-queue.ts';
import { isApiError } from '../../machinery/status.ts';
import type { Timer } from '../../platform/platform.ts';
import type { ControllerOptions } from '../controller.ts';
import { NODES, PODS } from '../resources.ts';

const QUARANTINE_MILLIS = 40 * 1000;

export async function startPodGc(options: ControllerOptions): Promise<void> {
  const { client, timers, log, signal } = options;
  const podClient = client.resource<Pod>(PODS);
  const queue = createWorkQueue({ name: 'pod-gc', process: collect, log, timers, signal });
  /** Of nodes that are missing, by name. */
  const quarantines = new Map<string, Timer>();
  signal.addEventListener('abort', () => {
    for (const timer of quarantines.values()) timer.cancel();
  });

  const nodes = createInformer(
    client.resource<Node>(NODES),
    { log, timers, signal },
    { deleted: ({ metadata }) => suspect(metadata.name) },
  );
  await nodes.synced;
  const pods = createInformer(
    podClient,
    { log, timers, signal },
    { added: ({ spec }) => suspect(spec?.nodeName), updated: ({ spec }) => suspect(spec?.nodeName) },
  );
  await pods.synced;

  function suspect(node: string | undefined): void {
    if (!node || nodes.get(undefined, node) !== undefined || quarantines.has(node)) return;
    const collectLater = (): void => {
      quarantines.delete(node);
      queue.add(node);
    };
    quarantines.set(node, timers.at(timers.now() + QUARANTINE_MILLIS, collectLater));
  }

  async function collect(node: string): Promise<void> {
    if (nodes.get(undefined, node) !== undefined) return;
    const orphans = pods.list().filter(({ spec }) => spec?.nodeName === node);
    for (const { metadata } of orphans) {
      const { name, namespace, uid } = metadata;
      log.info('pod-gc: deleting a Pod whose node is gone', { pod: `${namespace}/${name}`, node });
      try {
        await podClient.delete(name, namespace, { gracePeriodSeconds: 0, preconditions: { uid } });
      } catch (error) {
        if (!isApiError(error, 'NotFound') && !isApiError(error, 'Conflict')) throw error;
      }
    }
  }
}
