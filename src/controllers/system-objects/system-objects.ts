/**
 * Recreates the Service `kubernetes` and the namespace of the node Leases when a client has deleted them, and reverts
 * changes to the type and ports of the Service. Other system namespaces and priority classes cannot be deleted.
 *
 * Reads: the Service `kubernetes` and the namespace kube-node-lease. Writes: the system objects, through `bootstrap`.
 * Source: upstream's kubernetesservice and systemnamespaces controllers (behavior), except that upstream's controllers poll.
 */
import type { Namespace, Service } from '../../api/generated/types.ts';
import { NAMESPACES, SERVICES } from '../../api/resources.ts';
import { createWorkQueue } from '../../client/work-queue.ts';
import type { ControllerOptions } from '../controller.ts';

const SERVICE = { fieldSelector: 'metadata.namespace=default,metadata.name=kubernetes' };
const LEASE_NAMESPACE = { fieldSelector: 'metadata.name=kube-node-lease' };

/** Starts the controller. `bootstrap` creates missing system objects and corrects the Service; it must be idempotent. */
export async function startSystemObjects(
  options: ControllerOptions & { bootstrap: () => Promise<void> },
): Promise<void> {
  const { informers, timers, log, signal, bootstrap } = options;
  const queue = createWorkQueue({ name: 'system-objects', process: bootstrap, log, timers, signal });
  const enqueue = (): void => queue.add('all');
  const services = informers.follow<Service>(SERVICES, { ...SERVICE, signal }, { updated: enqueue, deleted: enqueue });
  const namespaces = informers.follow<Namespace>(NAMESPACES, { ...LEASE_NAMESPACE, signal }, { deleted: enqueue });
  await Promise.all([services.synced, namespaces.synced]);
  // A client may have deleted the Service or the Namespace before the informers listed them.
  enqueue();
  await queue.idle();
}
