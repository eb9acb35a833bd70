/**
 * Determines the fields of a Pod that the endpoints of a Service contain.
 * Source: the package endpointslice/util, and FindPort of pkg/api/v1/pod, of v1.33 (behavior).
 */
import { hasEnded } from '../../api/core/v1/pod/status/final-phase.ts';
import type { ObjectReference, Pod, Service, ServicePort } from '../../api/generated/types.ts';
import { canonicalIp, type IpFamily } from '../../machinery/ip.ts';
import { endpointIpErrors } from '../../machinery/ip-address.ts';
import { readyCondition } from '../ownership/pod-state.ts';

/** The annotation of Endpoints and EndpointSlices with the time of the change of a Pod or Service that caused their last change. */
export const TRIGGER_TIME = 'endpoints.kubernetes.io/last-change-trigger-time';
/** The label of the Endpoints and EndpointSlices of Services without a cluster IP. */
export const HEADLESS_LABEL = 'service.kubernetes.io/headless';

export const isHeadless = ({ spec }: Service): boolean => !spec?.clusterIP || spec.clusterIP === 'None';

/**
 * Returns the Pod's addresses of the family in their canonical form. Omits addresses that no endpoint may have, such as loopback addresses:
 * the API would reject the endpoints of all Pods together with them.
 */
export function addressesOf({ status }: Pod, family: IpFamily): string[] {
  const listed = (status?.podIPs ?? []).map(({ ip }) => ip);
  const ips = listed.length === 0 && status?.podIP !== undefined ? [status.podIP] : listed;
  return ips.flatMap((ip) => (endpointIpErrors(ip, family).length === 0 ? (canonicalIp(ip) ?? []) : []));
}

/** Whether the Pod may be an endpoint: it has not ended. `terminating`: whether Pods that are being deleted may be endpoints, too. */
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
 * Returns the number of the Pod's port to which the port of a Service is forwarded; undefined if the Pod has no port of this name and
 * protocol. Ports of init containers count only if the containers are sidecars, and ports of defer containers do not count.
 */
export function targetPortOf({ spec }: Pod, { port, targetPort = port, protocol = 'TCP' }: ServicePort) {
  if (typeof targetPort === 'number') return targetPort;
  const sidecars = (spec?.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always');
  for (const { ports = [] } of [...(spec?.containers ?? []), ...sidecars])
    for (const candidate of ports)
      if (candidate.name === targetPort && (candidate.protocol ?? 'TCP') === protocol) return candidate.containerPort;
  return undefined;
}

/** Returns the time of the last change of the Pod's readiness; undefined if it was never reported. */
export const readinessChangedAt = (pod: Pod): string | undefined => readyCondition(pod)?.lastTransitionTime;

/** Returns the earliest of the times, which are in the format of the API; undefined if there is none. */
export const earliest = (times: readonly (string | undefined)[]): string | undefined =>
  times.filter((time) => time !== undefined).sort()[0];
