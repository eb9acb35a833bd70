/** Definitions that several controllers share. */
import type { Pod } from '../api/generated/types.ts';
import type { Client } from '../client/client.ts';
import type { SharedInformers } from '../client/shared-informers.ts';
import type { Pause } from '../client/work-queue.ts';
import type { Log, Timers } from '../platform/platform.ts';

/**
 * In milliseconds. A timer that fires at least this late shows that the machine was suspended. The API may then still contain the node's
 * state from before the suspension.
 */
export const SUSPENDED_MILLIS = 10_000;

/** The keys for an index of Pods by node; none for a Pod that is not bound. */
export const nodeNamesOf = ({ spec }: Pod): readonly string[] => (spec?.nodeName ? [spec.nodeName] : []);

export interface ControllerOptions {
  client: Client;
  informers: SharedInformers;
  timers: Timers;
  log: Log;
  signal: AbortSignal;
  /**
   * While this pause is active, the controller creates no Pods. Only the controllers of CronJobs and the controllers that create Pods get
   * it.
   */
  noMorePods?: Pause | undefined;
}

/**
 * The names of the controllers as users of the API. Source: the ServiceAccounts of upstream's controllers. The token controller is
 * `kube-controller-manager`, because a ServiceAccount of its own would need a token from itself. Upstream has no ServiceAccounts for the
 * controllers of Events, PodRecords, system objects and IPAddresses.
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
