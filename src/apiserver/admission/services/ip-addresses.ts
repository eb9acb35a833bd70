/**
 * Determines which IPAddresses a write of a Service creates and deletes. An IPAddress object shows that a cluster IP is in use.
 * Source: ipallocator of pkg/registry/core/service of v1.33 (fields and wording); KEP-1880.
 */
import type { IPAddress, ServiceCIDR } from '../../../api/generated/types.ts';
import { ALLOCATOR, FAMILY_LABEL, MANAGED_BY_LABEL } from '../../../api/networking.k8s.io/v1/ip-address/index.ts';
import { isReadyServiceCidr } from '../../../api/networking.k8s.io/v1/service-cidr/index.ts';
import { invalid } from '../../../machinery/field-error.ts';
import { type IpFamily, parseIp, parseIpRange, rangeContains } from '../../../machinery/ip.ts';
import type { KubeObject } from '../../../machinery/meta.ts';
import { formatTime } from '../../../machinery/time.ts';
import { objectKey, resourcePrefix } from '../../cache/keys.ts';
import { revisionOf } from '../../cache/stored-object.ts';
import { randomUid } from '../../registry/random-names.ts';
import type { AdmissionServices, Alongside } from '../plugin.ts';
import { type ServiceRange, serviceRange } from '../service-range.ts';
import { addressesOf, invalidService, specOf } from './uses.ts';

const ADDRESSES_PREFIX = resourcePrefix('networking.k8s.io', 'ipaddresses');
const CIDRS_PREFIX = resourcePrefix('networking.k8s.io', 'servicecidrs');

export interface AddressRecords {
  /** Whether another object than the Service has the address, which is in canonical form. */
  isOfOther(address: string, service: KubeObject): boolean;
  /** Returns the ranges from which addresses can be allocated now, those of the default ServiceCIDR first. */
  ranges(): ServiceRange[];
  /**
   * Returns the IPAddresses to create and to delete, and the conditions for the write. `service` is undefined for a delete, and `old` is
   * undefined for a create. Throws 422 Invalid if a new address is no longer free, or no longer in a ready ServiceCIDR.
   */
  changes(service: KubeObject | undefined, old: KubeObject | undefined): Alongside[];
}

const isParent = (address: IPAddress | undefined, { metadata: { namespace, name } }: KubeObject): boolean => {
  const parent = address?.spec?.parentRef;
  return parent?.resource === 'services' && !parent.group && parent.namespace === namespace && parent.name === name;
};

const familyOf = (address: string): IpFamily => parseIp(address)?.family ?? 'IPv4';

function readyServiceCidrs({ cache }: Pick<AdmissionServices, 'cache'>): ServiceCIDR[] {
  const rank = ({ metadata }: ServiceCIDR): string => (metadata.name === 'kubernetes' ? '' : metadata.name);
  return (cache.list(CIDRS_PREFIX) as ServiceCIDR[])
    .filter(isReadyServiceCidr)
    .sort((a, b) => (rank(a) < rank(b) ? -1 : 1));
}

const rangesOf = ({ spec }: ServiceCIDR): ServiceRange[] =>
  (spec?.cidrs ?? []).flatMap((cidr) => {
    const range = parseIpRange(cidr);
    return range === undefined ? [] : [serviceRange(range)];
  });

export function createAddressRecords(services: Omit<AdmissionServices, 'serviceCidr' | 'store'>): AddressRecords {
  const { cache, timers, randomBytes } = services;
  const addressAt = (address: string): IPAddress | undefined =>
    cache.get(objectKey(ADDRESSES_PREFIX, undefined, address)) as IPAddress | undefined;

  const newAddress = (address: string, { metadata: { namespace, name } }: KubeObject): IPAddress => ({
    apiVersion: 'networking.k8s.io/v1',
    kind: 'IPAddress',
    metadata: {
      name: address,
      uid: randomUid(randomBytes),
      creationTimestamp: formatTime(timers.now()),
      labels: { [FAMILY_LABEL]: familyOf(address), [MANAGED_BY_LABEL]: ALLOCATOR },
    },
    spec: { parentRef: { resource: 'services', namespace, name } },
  });

  function allocation(address: string, service: KubeObject): Alongside[] {
    const refuse = (cause: string) =>
      invalidService(service, [
        invalid('spec.clusterIPs', specOf(service).clusterIPs, `failed to allocate IP ${address}: ${cause}`),
      ]);
    const ip = parseIp(address);
    const found = readyServiceCidrs(services).find((cidr) =>
      rangesOf(cidr).some((range) => ip !== undefined && rangeContains(range, ip)),
    );
    if (found === undefined) throw refuse('the provided network does not match the current range');
    const from = { key: objectKey(CIDRS_PREFIX, undefined, found.metadata.name), modRevision: revisionOf(found) };
    const existing = addressAt(address);
    const key = objectKey(ADDRESSES_PREFIX, undefined, address);
    if (existing === undefined)
      return [from, { key, modRevision: 0, object: newAddress(address, service) as KubeObject }];
    if (!isParent(existing, service)) throw refuse('provided IP is already allocated');
    return [from, { key, modRevision: revisionOf(existing) }];
  }

  function release(address: string, service: KubeObject): Alongside[] {
    const existing = addressAt(address);
    if (existing === undefined || !isParent(existing, service)) return [];
    const key = objectKey(ADDRESSES_PREFIX, undefined, address);
    return [{ key, modRevision: revisionOf(existing), deleted: true }];
  }

  return {
    isOfOther(address, service) {
      const existing = addressAt(address);
      return existing !== undefined && !isParent(existing, service);
    },
    ranges: () => readyServiceCidrs(services).flatMap(rangesOf),
    changes(service, old) {
      const after = service === undefined ? [] : addressesOf(specOf(service));
      const before = old === undefined ? [] : addressesOf(specOf(old));
      return [
        ...after.filter((each) => !before.includes(each)).flatMap((each) => allocation(each, service as KubeObject)),
        ...before.filter((each) => !after.includes(each)).flatMap((each) => release(each, old as KubeObject)),
      ];
    },
  };
}
