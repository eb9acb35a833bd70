/**
 * Determines the fields of a Pod that the endpoints of a Service contain.
 * Source: the package endpointslice/util, and FindPort of pkg/api/v1/pod, of v1.33 (behavior).
 */
import { hasEnded } from '../../api/core/v1/pod/status/final-phase.ts';
import type { ObjectReference, Pod, Service, ServicePort } from '../../api/generated/types.ts';
import { canonicalIp, type IpFamily } from '../../machinery/ip.ts';
import { endpointIpErrors } from '../../machinery/ip-address.ts';
import { readyCondition } from '../ownership/pod-state.ts';

/** An annotation of Endpoints and EndpointSlices: the time of the Pod or Service change that caused their last update. */
export const TRIGGER_TIME = 'endpoints.kubernetes.io/last-change-trigger-time';
/** The label of Endpoints and EndpointSlices of Services without a cluster IP. */
export const HEADLESS_LABEL = 'service.kubernetes.io/headless';

export const isHeadless = ({ spec }: Service): boolean => !spec?.clusterIP || spec.clusterIP === 'None';

/**
 * Returns the addresses of the Pod in the family, in canonical form. Omits invalid ones, such as loopback addresses, because the API would
 * reject the whole list of endpoints.
 */
export function addressesOf({ status }: Pod, family: IpFamily): string[] {
  const listed = (status?.podIPs ?? []).map(({ ip }) => ip);
  const ips = listed.length === 0 && status?.podIP !== undefined ? [status.podIP] : listed;
  return ips.flatMap((ip) => (endpointIpErrors(ip, family).length === 0 ? (canonicalIp(ip) ?? []) : []));
}

/** Whether the Pod may be an endpoint. `terminating`: whether Pods that are being deleted may be endpoints. */
export const isEndpoint = (pod: Pod, terminating: boolean): boolean =>
  !hasEnded(pod) && (terminating || pod.metadata.deletionTimestamp === undefined);

/** Returns the host name that DNS resolves for the Pod; undefined if the Pod's subdomain is not the Service. */
export const hostnameOf = ({ spec }: Pod, service: Service): string | undefined =>
  spec?.hostname && spec.subdomain === service.metadata.name ? spec.hostname : undefined;

export const podReference = ({ metadata: { namespace, name, uid } }: Pod): ObjectReference => ({
  kind: 'Pod',
  namespace,
  name,
  uid,
});

/**
 * Returns the port of the Pod that receives the connections; undefined if the Pod has no port of this name and protocol. Ports of sidecars
 * count; ports of other init containers and of defer containers do not.
 */
export function targetPortOf({ spec }: Pod, { port, targetPort = port, protocol = 'TCP' }: ServicePort) {
  if (typeof targetPort === 'number') return targetPort;
  const sidecars = (spec?.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always');
  for (const { ports = [] } of [...(spec?.containers ?? []), ...sidecars])
    for (const candidate of ports)
      if (candidate.name === targetPort && (candidate.protocol ?? 'TCP') === protocol) return candidate.containerPort;
  return undefined;
}

/** Returns when the Pod's readiness last changed; undefined if it was never reported. */
export const readinessChangedAt = (pod: Pod): string | undefined => readyCondition(pod)?.lastTransitionTime;

export const earliest = (times: readonly (string | undefined)[]): string | undefined =>
  times.filter((time) => time !== undefined).sort()[0];
