/** Allocates the cluster IPs and node ports of Services (see service-allocator.ts), and keeps those that an update omits. */
import type { Service } from '../../api/generated/types.ts';
import { SERVICES } from '../../api/resources.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import type { PluginFactory } from './plugin.ts';
import { createServiceAllocator } from './service-allocator.ts';
import { on } from './targets.ts';

export const serviceAllocation: PluginFactory = (services) => {
  const allocator = createServiceAllocator(services, services.serviceCidr, services.randomBytes);
  return {
    name: 'ServiceAllocation',
    handles: on(SERVICES, 'CREATE', 'UPDATE'),
    admit({ object, old }) {
      if (old !== undefined) keepAllocated(object as Service, old as Service);
    },
    allocate: ({ object, old }) => allocator.admit(object as KubeObject, old),
  };
};

/**
 * Copies the cluster IPs from the old Service if the new one has none, unless one of the two has the type ExternalName. Source:
 * upstream's patchAllocatedValues (behavior).
 */
function keepAllocated({ spec }: Service, { spec: old }: Service): void {
  if (spec === undefined || old === undefined) return;
  if (spec.type === 'ExternalName' || old.type === 'ExternalName') return;
  if (!spec.clusterIP && old.clusterIP !== undefined) spec.clusterIP = old.clusterIP;
  if (!spec.clusterIPs?.length && spec.clusterIP === old.clusterIP) spec.clusterIPs = [...(old.clusterIPs ?? [])];
}
