/**
 * Recreates system objects that a client has deleted: the Service `kubernetes` with its Endpoints and EndpointSlice, the ServiceCIDR
 * `kubernetes`, the Service `kube-dns` with its EndpointSlice, and the namespace of the node Leases. Reverts changes to the Services and
 * their endpoints. Other system namespaces and priority classes cannot be deleted.
 *
 * Reads: these objects. Writes: the system objects, through `bootstrap`.
 * Source: upstream's kubernetesservice and systemnamespaces controllers (behavior), except that upstream's controllers poll.
 */
import type { EndpointSlice, Endpoints, Namespace, Service, ServiceCIDR } from '../../api/generated/types.ts';
import { ENDPOINT_SLICES, ENDPOINTS, NAMESPACES, SERVICE_CIDRS, SERVICES } from '../../api/resources.ts';
import { createWorkQueue } from '../../client/work-queue.ts';
import type { ControllerOptions } from '../controller.ts';

const SERVICE = { fieldSelector: 'metadata.namespace=default,metadata.name=kubernetes' };
const DNS = { fieldSelector: 'metadata.namespace=kube-system,metadata.name=kube-dns' };
const SERVICE_CIDR = { fieldSelector: 'metadata.name=kubernetes' };
const LEASE_NAMESPACE = { fieldSelector: 'metadata.name=kube-node-lease' };

/** `bootstrap` creates missing system objects and corrects the Services. It must be idempotent. */
export async function startSystemObjects(
  options: ControllerOptions & { bootstrap: () => Promise<void> },
): Promise<void> {
  const { informers, timers, log, signal, bootstrap } = options;
  const queue = createWorkQueue({ name: 'system-objects', process: bootstrap, log, timers, signal });
  const enqueue = (): void => queue.add('all');
  const changed = { updated: enqueue, deleted: enqueue };
  const followed = [
    informers.follow<Service>(SERVICES, { ...SERVICE, signal }, changed),
    informers.follow<Endpoints>(ENDPOINTS, { ...SERVICE, signal }, changed),
    informers.follow<EndpointSlice>(ENDPOINT_SLICES, { ...SERVICE, signal }, changed),
    informers.follow<Service>(SERVICES, { ...DNS, signal }, changed),
    informers.follow<EndpointSlice>(ENDPOINT_SLICES, { ...DNS, signal }, changed),
    informers.follow<Namespace>(NAMESPACES, { ...LEASE_NAMESPACE, signal }, { deleted: enqueue }),
    informers.follow<ServiceCIDR>(SERVICE_CIDRS, { ...SERVICE_CIDR, signal }, { deleted: enqueue }),
  ];
  await Promise.all(followed.map(({ synced }) => synced));
  // A client may have deleted an object before the informers listed the objects.
  enqueue();
  await queue.idle();
}
