/** The options that every controller takes, the names of the controllers, and definitions that several controllers share. */
import type { Pod } from '../api/generated/types.ts';
import type { Client } from '../client/client.ts';
import type { SharedInformers } from '../client/shared-informers.ts';
import type { Log, Timers } from '../platform/platform.ts';

/**
 * A timer that fires at least this late shows that the machine was suspended. The node's state in the API may then still be
 * the state from before the suspension.
 */
export const SUSPENDED_MILLIS = 10_000;

/** Returns the name of the Pod's node, for an index of the Pods by node; an empty list if the Pod is not bound. */
export const nodeNamesOf = ({ spec }: Pod): readonly string[] => (spec?.nodeName ? [spec.nodeName] : []);

export interface ControllerOptions {
  client: Client;
  informers: SharedInformers;
  timers: Timers;
  log: Log;
  /** Aborts when the controller must stop. */
  signal: AbortSignal;
}

/**
 * The names of the controllers as users of the API. Source: the ServiceAccounts of upstream's controllers, and `kube-controller-manager`
 * for the controller of tokens, which has no ServiceAccount, because it would have to issue its own token. Upstream has no controllers for
 * Events, PodRecords and system objects.
 */
export type ControllerName =
  | 'certificate-controller'
  | 'clusterrole-aggregation-controller'
  | 'cronjob-controller'
  | 'daemon-set-controller'
  | 'deployment-controller'
  | 'disruption-controller'
  | 'endpoint-controller'
  | 'endpointslice-controller'
  | 'endpointslicemirroring-controller'
  | 'event-ttl-controller'
  | 'generic-garbage-collector'
  | 'ipallocator-repair-controller'
  | 'job-controller'
  | 'kube-controller-manager'
  | 'namespace-controller'
  | 'node-controller'
  | 'persistent-volume-binder'
  | 'pod-garbage-collector'
  | 'pod-record-controller'
  | 'replicaset-controller'
  | 'resourcequota-controller'
  | 'replication-controller'
  | 'root-ca-cert-publisher'
  | 'service-account-controller'
  | 'service-cidrs-controller'
  | 'service-controller'
  | 'statefulset-controller'
  | 'system-object-controller'
  | 'ttl-after-finished-controller'
  | 'unbound-record-controller';
