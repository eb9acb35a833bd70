/**
 * Keeps the EndpointSlices of each Service with a selector: they contain the addresses, ports and states of its Pods.
 *
 * Reads: services, pods, nodes, endpointslices. Writes: endpointslices (create, update, delete), events.
 * Invariants:
 *  1. A Service's next reconcile sees the writes of the previous one that must not be repeated, because a reconcile ends only when the
 *     informer's cache contains its writes. Therefore no endpoint is in two slices. Exception: a create of a killed engine takes effect
 *     late; the next reconcile corrects this.
 *  2. Slices that another component manages, and slices of Services without a selector or of the type ExternalName, are left alone.
 *  3. The garbage collector deletes the slices of a deleted Service, which is their owner.
 * Source: pkg/controller/endpointslice of v1.33 (behavior, reasons and wording; its tracker of slices is replaced by invariant 1).
 */
import { SLICE_CONTROLLER } from '../../api/discovery.k8s.io/v1/endpoint-slice/labels.ts';
import type { Node } from '../../api/generated/types.ts';
import { NODES } from '../../api/resources.ts';
import { createEventRecorder } from '../../client/events.ts';
import { createWorkQueue } from '../../client/work-queue.ts';
import type { ControllerOptions } from '../controller.ts';
import { followServices, hasSelector } from '../service-pods/follow-services.ts';
import { ZONE_LABEL } from './desired-endpoints.ts';
import { followSlices } from './follow-slices.ts';
import { reconcile } from './reconcile.ts';
import { writeSlices } from './slice-changes.ts';

/** Resolves once the controller has read the Services, Pods, Nodes and EndpointSlices. */
export async function startEndpointSlices(options: ControllerOptions): Promise<void> {
  const { client, informers, timers, log, signal } = options;
  const events = createEventRecorder(client, { component: 'endpoint-slice-controller', timers, log, signal });
  const queue = createWorkQueue({ name: 'endpoint_slice', process, log, timers, signal });
  const { services, podsOf, nodeChanged, synced: servicesSynced } = followServices(options, queue.add);
  const changed = ({ metadata }: Node): void => nodeChanged(metadata.name);
  const zoneOf = ({ metadata }: Node): string | undefined => metadata.labels?.[ZONE_LABEL];
  const updated = (node: Node, old: Node): void => (zoneOf(node) === zoneOf(old) ? undefined : changed(node));
  const nodes = informers.follow<Node>(NODES, { signal }, { added: changed, updated, deleted: changed });
  const { slices, slicesOf } = followSlices(options, SLICE_CONTROLLER, queue.add);
  const synced = Promise.all([servicesSynced, nodes.synced, slices.synced]);

  async function process(key: string): Promise<void> {
    await synced;
    const [namespace, name] = key.split('/') as [string, string];
    const service = services.get(namespace, name);
    if (service === undefined || service.spec?.type === 'ExternalName' || !hasSelector(service)) return;
    const changes = reconcile({
      service,
      pods: podsOf(service),
      nodeNamed: (node) => nodes.get(undefined, node),
      slices: slicesOf(namespace, name),
    });
    try {
      await writeSlices(client, slices, changes);
    } catch (error) {
      const text = `Error updating Endpoint Slices for Service ${key}: ${(error as Error).message}`;
      events.event(service, 'Warning', 'FailedToUpdateEndpointSlices', text);
      throw error;
    }
  }

  await synced;
}
