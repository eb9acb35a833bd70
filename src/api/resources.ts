import type { ResourceRef } from '../machinery/meta.ts';

export const coreResource = (resource: string): ResourceRef => ({ group: '', version: 'v1', resource });
const appsResource = (resource: string): ResourceRef => ({ group: 'apps', version: 'v1', resource });
const batchResource = (resource: string): ResourceRef => ({ group: 'batch', version: 'v1', resource });
const networkingResource = (resource: string): ResourceRef => ({ group: 'networking.k8s.io', version: 'v1', resource });
const rbacResource = (resource: string): ResourceRef => ({
  group: 'rbac.authorization.k8s.io',
  version: 'v1',
  resource,
});

export const CERTIFICATE_SIGNING_REQUESTS: ResourceRef = {
  group: 'certificates.k8s.io',
  version: 'v1',
  resource: 'certificatesigningrequests',
};
export const CLUSTER_ROLE_BINDINGS = rbacResource('clusterrolebindings');
export const CLUSTER_ROLES = rbacResource('clusterroles');
export const CONFIG_MAPS = coreResource('configmaps');
export const CONTROLLER_REVISIONS = appsResource('controllerrevisions');
export const CRON_JOBS = batchResource('cronjobs');
export const DAEMON_SETS = appsResource('daemonsets');
export const DEPLOYMENTS = appsResource('deployments');
export const ENDPOINT_SLICES: ResourceRef = { group: 'discovery.k8s.io', version: 'v1', resource: 'endpointslices' };
export const ENDPOINTS = coreResource('endpoints');
export const EVENTS = coreResource('events');
export const INGRESSES = networkingResource('ingresses');
export const IP_ADDRESSES = networkingResource('ipaddresses');
export const JOBS = batchResource('jobs');
export const LEASES: ResourceRef = { group: 'coordination.k8s.io', version: 'v1', resource: 'leases' };
export const LIMIT_RANGES = coreResource('limitranges');
export const NAMESPACES = coreResource('namespaces');
export const NETWORK_POLICIES = networkingResource('networkpolicies');
export const NODES = coreResource('nodes');
export const PERSISTENT_VOLUME_CLAIMS = coreResource('persistentvolumeclaims');
export const PERSISTENT_VOLUMES = coreResource('persistentvolumes');
export const POD_DISRUPTION_BUDGETS: ResourceRef = {
  group: 'policy',
  version: 'v1',
  resource: 'poddisruptionbudgets',
};
export const PODS = coreResource('pods');
export const PRIORITY_CLASSES: ResourceRef = {
  group: 'scheduling.k8s.io',
  version: 'v1',
  resource: 'priorityclasses',
};
export const REPLICA_SETS = appsResource('replicasets');
export const REPLICATION_CONTROLLERS = coreResource('replicationcontrollers');
export const RESOURCE_QUOTAS = coreResource('resourcequotas');
export const ROLE_BINDINGS = rbacResource('rolebindings');
export const ROLES = rbacResource('roles');
export const RUNTIME_CLASSES: ResourceRef = { group: 'node.k8s.io', version: 'v1', resource: 'runtimeclasses' };
export const SECRETS = coreResource('secrets');
export const SERVICE_CIDRS = networkingResource('servicecidrs');
export const SERVICE_ACCOUNTS = coreResource('serviceaccounts');
export const SERVICES = coreResource('services');
export const STATEFUL_SETS = appsResource('statefulsets');
export const STORAGE_CLASSES: ResourceRef = { group: 'storage.k8s.io', version: 'v1', resource: 'storageclasses' };
