/**
 * Allocates the IP families, cluster IPs and node ports of Services.
 *
 * Invariants:
 *  1. The IPAddresses of a Service are created and deleted in the transaction that writes or deletes the Service, so that no crash can
 *     separate them. No two Services get the same address, because the name of its IPAddress is unique.
 *  2. A transaction that allocates an address fails if the ServiceCIDR with the address has changed since the address was chosen, so that
 *     no address comes from a ServiceCIDR whose deletion has begun.
 *
 * Source: pkg/registry/core/service/storage, ipallocator and portallocator of v1.33 (behavior and wording), except that upstream writes
 * IPAddresses before and after the Service; KEP-1880.
 */
import type { Service } from '../../../api/generated/types.ts';
import type { FieldError } from '../../../machinery/field-error.ts';
import type { KubeObject } from '../../../machinery/meta.ts';
import { objectKey } from '../../cache/keys.ts';
import { whenCurrent } from '../../registry/reads/freshness.ts';
import type { AdmissionServices, Alongside } from '../plugin.ts';
import { parseServiceCidrs } from '../service-range.ts';
import { assignClusterIps } from './cluster-ips.ts';
import { fillFamilies } from './families.ts';
import { createAddressRecords } from './ip-addresses.ts';
import { assignNodePorts } from './node-ports.ts';
import { createReservations, followHostPorts, followUses, invalidService, SERVICES_PREFIX, specOf } from './uses.ts';

export interface ServiceAllocator {
  /**
   * Sets the missing IP families, cluster IPs and node ports, and reserves the addresses and ports. `old` is undefined in a create. Call
   * the returned function when the write has finished: the reservation then ends as soon as the cache contains the write. Throws 422
   * Invalid if a requested address, port or IP family is not available, and 500 InternalError if no address or port is free.
   */
  admit(service: KubeObject, old: KubeObject | undefined): () => void;
  /**
   * Returns the IPAddresses to create and to delete, and the conditions for the write. `service` is undefined for a delete, and `old` for a
   * create. Throws 422 Invalid if a new address is no longer free, or no longer in a ready ServiceCIDR.
   */
  addressChanges(service: KubeObject | undefined, old: KubeObject | undefined): Alongside[];
}

export function createServiceAllocator(services: AdmissionServices): ServiceAllocator {
  const { cache, store, randomBytes, serviceCidr } = services;
  const configured = parseServiceCidrs(serviceCidr).map(({ family }) => family);
  const usedByOthers = followUses(cache);
  const isHostPort = followHostPorts(cache);
  const pending = createReservations();
  const records = createAddressRecords(services);
  const random = (below: bigint): bigint => Buffer.from(randomBytes(8)).readBigUInt64BE() % below;
  return {
    admit(service, old) {
      const spec = (service as Service).spec;
      if (spec === undefined || spec.type === 'ExternalName') return () => {};
      const isUsed = usedByOthers(service);
      const owner = objectKey(SERVICES_PREFIX, service.metadata.namespace, service.metadata.name);
      const isTaken = (use: string): boolean => isUsed(use) || pending.isOfOther(use, owner);
      const reserved: string[] = [];
      const reserve = (use: string): void => {
        pending.add(use, owner);
        reserved.push(use);
      };
      const end = (): void => {
        for (const use of reserved) pending.delete(use);
      };
      const shared = { random, fail: (errors: FieldError[]) => invalidService(service, errors) };
      const oldSpec = old === undefined ? undefined : specOf(old);
      try {
        const errors = fillFamilies(spec, oldSpec, configured);
        if (errors.length > 0) throw invalidService(service, errors);
        const isAddressTaken = (address: string): boolean => isTaken(address) || records.isOfOther(address, service);
        assignClusterIps(spec, oldSpec, { ...shared, ranges: records.ranges(), isTaken: isAddressTaken, reserve });
        const portOf = (port: number): string => String(port);
        const ports = {
          isTaken: (port: number) => isTaken(portOf(port)),
          isHostPort,
          reserve: (port: number) => reserve(portOf(port)),
        };
        assignNodePorts(spec, oldSpec, { ...shared, ...ports });
      } catch (error) {
        end();
        throw error;
      }
      return () => whenCurrent({ cache, store }, end);
    },
    addressChanges: records.changes,
  };
}
