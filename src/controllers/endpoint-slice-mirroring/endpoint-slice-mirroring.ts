/**
 * Copies the Endpoints of Services without a selector to EndpointSlices, because the proxy and DNS read only EndpointSlices.
 *
 * Reads: services, endpoints, endpointslices. Writes: endpointslices (create, update, delete), events.
 * Invariants:
 *  1. The next reconcile of Endpoints sees the writes of the previous one that must not be repeated, because a reconcile ends only when the
 *     informer's cache contains its writes.
 *  2. Slices that another component manages are left alone.
 * Source: pkg/controller/endpointslicemirroring of v1.33 (behavior, reasons and wording; its tracker of slices is replaced by invariant 1).
 */
import { MIRRORING_CONTROLLER } from '../../api/discovery.k8s.io/v1/endpoint-slice/labels.ts';
import type { Endpoints, Service } from '../../api/generated/types.ts';
import { ENDPOINTS, SERVICES } from '../../api/resources.ts';
import { createEventRecorder } from '../../client/events.ts';
import { createWorkQueue } from '../../client/work-queue.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import type { ControllerOptions } from '../controller.ts';
import { followSlices } from '../endpoint-slice/follow-slices.ts';
import { writeSlices } from '../endpoint-slice/slice-changes.ts';
import { hasSelector } from '../service-pods/follow-services.ts';
import { isMirrored, MAX_PER_SUBSET, type MirrorDecision, reconcile } from './reconcile.ts';

/** Resolves once the controller has read the Services, Endpoints and EndpointSlices. */
export async function startEndpointSliceMirroring(options: ControllerOptions): Promise<void> {
  const { client, informers, timers, log, signal } = options;
  const component = 'endpoint-slice-mirroring-controller';
  const events = createEventRecorder(client, { component, timers, log, signal });
  const queue = createWorkQueue({ name: 'endpoint_slice_mirroring', process, log, timers, signal });
  const changed = ({ metadata }: KubeObject): void => queue.add(`${metadata.namespace}/${metadata.name}`);
  const services = informers.follow<Service>(
    SERVICES,
    { signal },
    {
      added: (service) => (hasSelector(service) ? undefined : changed(service)),
      updated: (service, old) => (hasSelector(service) === hasSelector(old) ? undefined : changed(service)),
      deleted: (service) => (hasSelector(service) ? undefined : changed(service)),
    },
  );
  const followed = { added: changed, updated: changed, deleted: changed };
  const endpoints = informers.follow<Endpoints>(ENDPOINTS, { signal }, followed);
  const { slices, slicesOf } = followSlices(options, MIRRORING_CONTROLLER, queue.add);
  const synced = Promise.all([services.synced, endpoints.synced, slices.synced]);

  async function process(key: string): Promise<void> {
    await synced;
    const [namespace, name] = key.split('/') as [string, string];
    const shown = endpoints.get(namespace, name);
    const existing = slicesOf(namespace, name);
    if (!isMirrored(shown, services.get(namespace, name))) {
      await writeSlices(client, slices, { create: [], update: [], remove: existing });
      return;
    }
    const { changes, skipped } = reconcile(shown, existing);
    if (Object.values(changes).some(({ length }) => length > 0)) reportSkipped(shown, skipped);
    await writeSlices(client, slices, changes);
  }

  function reportSkipped(shown: Endpoints, { beyondMax, invalid }: MirrorDecision['skipped']): void {
    if (invalid > 0) {
      const text = `Skipped ${invalid} invalid IP addresses when mirroring to EndpointSlices`;
      events.event(shown, 'Warning', 'InvalidIPAddress', text);
    }
    if (beyondMax > 0) {
      const text = `A max of ${MAX_PER_SUBSET} addresses can be mirrored to EndpointSlices per Endpoints subset. ${beyondMax} addresses were skipped`;
      events.event(shown, 'Warning', 'TooManyAddressesToMirror', text);
    }
  }

  await synced;
}
