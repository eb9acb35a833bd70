/**
 * Follows the EndpointSlices that one controller manages. Source: the event handlers of pkg/controller/endpointslice of v1.33 (behavior).
 */
import { MANAGED_BY_LABEL, SERVICE_NAME_LABEL } from '../../api/discovery.k8s.io/v1/endpoint-slice/labels.ts';
import type { EndpointSlice } from '../../api/generated/types.ts';
import { ENDPOINT_SLICES } from '../../api/resources.ts';
import type { Informer } from '../../client/informer.ts';
import type { ControllerOptions } from '../controller.ts';

const keyOf = (manager: string, namespace: string | undefined, service: string): string =>
  `${manager}/${namespace ?? ''}/${service}`;

function sliceKeys({ metadata: { namespace, labels = {} } }: EndpointSlice): string[] {
  const { [MANAGED_BY_LABEL]: manager, [SERVICE_NAME_LABEL]: service } = labels;
  return manager && service ? [keyOf(manager, namespace, service)] : [];
}

export interface FollowedSlices {
  slices: Informer<EndpointSlice>;
  /** Returns the slices of a Service that are not being deleted, ordered by name. */
  slicesOf(namespace: string, service: string): EndpointSlice[];
}

/** Calls `changed` when a slice of `manager` changes, with the key of the slice's Service: its namespace, `/` and its name. */
export function followSlices(
  { informers, signal }: Pick<ControllerOptions, 'informers' | 'signal'>,
  manager: string,
  changed: (key: string) => void,
): FollowedSlices {
  const queue = ({ metadata: { namespace, labels = {} } }: EndpointSlice): void => {
    const { [MANAGED_BY_LABEL]: managedBy, [SERVICE_NAME_LABEL]: service } = labels;
    if (managedBy === manager && service) changed(`${namespace}/${service}`);
  };
  const slices = informers.follow<EndpointSlice>(
    ENDPOINT_SLICES,
    { signal },
    {
      added: queue,
      deleted: queue,
      updated(slice, old) {
        queue(slice);
        queue(old);
      },
    },
  );
  return {
    slices,
    slicesOf: (namespace, service) =>
      [...slices.by(sliceKeys, keyOf(manager, namespace, service))]
        .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
        .sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1)),
  };
}
