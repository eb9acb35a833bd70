/**
 * Makes the Service `kubernetes` and the namespace of the nodes' Leases again when a client has deleted them, and undoes
 * changes of the Service's type and ports. Other system namespaces and the system's priority classes cannot be deleted.
 *
 * Reads: services, namespaces, one name of each. Writes: what `bootstrap` writes.
 * Source: upstream's kubernetesservice and systemnamespaces controllers (behavior); those look at intervals.
 */
import type { Namespace, Service } from '../../api/generated/types.ts';
import { createInformer } from '../../client/informer.ts';
import { createWorkQueue } from '../../client/work-queue.ts';
import type { ControllerOptions } from '../controller.ts';
import { NAMESPACES, SERVICES } from '../resources.ts';

const SERVICE = { namespace: 'default', fieldSelector: 'metadata.name=kubernetes' };
const LEASE_NAMESPACE = { fieldSelector: 'metadata.name=kube-node-lease' };

/** `bootstrap` makes the system's objects that are missing, and corrects the Service; it may be called at any time. */
export async function startSystemObjects(
  options: ControllerOptions & { bootstrap: () => Promise<void> },
): Promise<void> {
  const { client, timers, log, signal, bootstrap } = options;
  const queue = createWorkQueue({ name: 'system-objects', process: bootstrap, log, timers, signal });
  const look = (): void => queue.add('all');
  const services = createInformer(
    client.resource<Service>(SERVICES),
    { ...SERVICE, log, timers, signal },
    { updated: look, deleted: look },
  );
  const namespaces = createInformer(
    client.resource<Namespace>(NAMESPACES),
    { ...LEASE_NAMESPACE, log, timers, signal },
    { deleted: look },
  );
  await Promise.all([services.synced, namespaces.synced]);
  // A client may have deleted one before the first lists.
  look();
  await queue.idle();
}
