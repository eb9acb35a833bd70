/** Decides whether a ServiceCIDR is ready, and whether it may be deleted. */
import type { Condition, IPAddress, ServiceCIDR } from '../../api/generated/types.ts';
import { ALLOCATOR, MANAGED_BY_LABEL } from '../../api/networking.k8s.io/v1/ip-address/index.ts';
import { type IpRange, parseIp, parseIpRange, rangeContains, rangeContainsRange } from '../../machinery/ip.ts';

/** Keeps a ServiceCIDR in the API while its addresses are in use. */
export const FINALIZER = 'networking.k8s.io/service-cidr-finalizer';

export interface Verdict {
  /** The finalizers to write; undefined if they are correct. */
  finalizers?: string[];
  /** The condition Ready without its time; undefined if the ServiceCIDR is being deleted and nothing prevents the deletion. */
  ready?: Omit<Condition, 'lastTransitionTime'>;
}

const READY = { type: 'Ready', status: 'True', reason: '', message: 'Kubernetes Service CIDR is ready' };
const TERMINATING = {
  type: 'Ready',
  status: 'False',
  reason: 'Terminating',
  message: 'There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR',
};

const rangesOf = ({ spec }: ServiceCIDR): IpRange[] => (spec?.cidrs ?? []).flatMap((cidr) => parseIpRange(cidr) ?? []);

/**
 * A ServiceCIDR may be deleted if each Service address in its ranges is also in another ServiceCIDR that is not being deleted. Source:
 * canDeleteCIDR of pkg/controller/servicecidrs of v1.33 (behavior), which also counts ServiceCIDRs that are being deleted.
 */
export function decide(cidr: ServiceCIDR, others: readonly ServiceCIDR[], addresses: readonly IPAddress[]): Verdict {
  const { deletionTimestamp, finalizers = [] } = cidr.metadata;
  const isProtected = finalizers.includes(FINALIZER);
  if (deletionTimestamp === undefined) {
    return { ...(isProtected ? {} : { finalizers: [...finalizers, FINALIZER] }), ready: READY };
  }
  if (!isProtected) return {};
  const own = rangesOf(cidr);
  const remaining = others.filter(({ metadata }) => metadata.deletionTimestamp === undefined).flatMap(rangesOf);
  const uncovered = own.filter((range) => !remaining.some((other) => rangeContainsRange(other, range)));
  const isOrphaned = ({ metadata }: IPAddress): boolean => {
    const ip = metadata.labels?.[MANAGED_BY_LABEL] === ALLOCATOR ? parseIp(metadata.name) : undefined;
    const isIn = (range: IpRange): boolean => ip !== undefined && rangeContains(range, ip);
    return uncovered.some(isIn) && !remaining.some(isIn);
  };
  if (uncovered.length > 0 && addresses.some(isOrphaned)) return { ready: TERMINATING };
  return { finalizers: finalizers.filter((name) => name !== FINALIZER) };
}
