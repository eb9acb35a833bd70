import { SERVICES } from '../../../api/resources.ts';
import type { KubeObject } from '../../../machinery/meta.ts';
import type { PluginFactory } from '../plugin.ts';
import { on } from '../targets.ts';
import { createServiceAllocator } from './service-allocator.ts';

export const serviceAllocation: PluginFactory = (services) => {
  const allocator = createServiceAllocator(services);
  return {
    name: 'ServiceAllocation',
    handles: on(SERVICES, 'CREATE', 'UPDATE', 'DELETE'),
    allocate: ({ object, old }) => allocator.admit(object as KubeObject, old),
    alongside: ({ object, old }) => allocator.addressChanges(object, old),
  };
};
