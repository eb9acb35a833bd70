/** The resources that lifepod's own components read and write. */
import type { ResourceRef } from '../machinery/meta.ts';

export const coreResource = (resource: string): ResourceRef => ({ group: '', version: 'v1', resource });

export const CONFIG_MAPS = coreResource('configmaps');
export const EVENTS = coreResource('events');
export const LEASES: ResourceRef = { group: 'coordination.k8s.io', version: 'v1', resource: 'leases' };
export const NAMESPACES = coreResource('namespaces');
export const NODES = coreResource('nodes');
export const PERSISTENT_VOLUME_CLAIMS = coreResource('persistentvolumeclaims');
export const PERSISTENT_VOLUMES = coreResource('persistentvolumes');
export const PODS = coreResource('pods');
export const PRIORITY_CLASSES: ResourceRef = {
  group: 'scheduling.k8s.io',
  version: 'v1',
  resource: 'priorityclasses',
};
export const RUNTIME_CLASSES: ResourceRef = { group: 'node.k8s.io', version: 'v1', resource: 'runtimeclasses' };
export const SECRETS = coreResource('secrets');
export const SERVICE_ACCOUNTS = coreResource('serviceaccounts');
export const SERVICES = coreResource('services');
export const STORAGE_CLASSES: ResourceRef = { group: 'storage.k8s.io', version: 'v1', resource: 'storageclasses' };
