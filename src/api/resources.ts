/** The resources that lifepod's own components read and write. */
import type { ResourceRef } from '../machinery/meta.ts';

const core = (resource: string): ResourceRef => ({ group: '', version: 'v1', resource });

export const CONFIG_MAPS = core('configmaps');
export const EVENTS = core('events');
export const LEASES: ResourceRef = { group: 'coordination.k8s.io', version: 'v1', resource: 'leases' };
export const NAMESPACES = core('namespaces');
export const NODES = core('nodes');
export const PERSISTENT_VOLUME_CLAIMS = core('persistentvolumeclaims');
export const PERSISTENT_VOLUMES = core('persistentvolumes');
export const PODS = core('pods');
export const PRIORITY_CLASSES: ResourceRef = {
  group: 'scheduling.k8s.io',
  version: 'v1',
  resource: 'priorityclasses',
};
export const SECRETS = core('secrets');
export const SERVICE_ACCOUNTS = core('serviceaccounts');
export const SERVICES = core('services');
export const STORAGE_CLASSES: ResourceRef = { group: 'storage.k8s.io', version: 'v1', resource: 'storageclasses' };
