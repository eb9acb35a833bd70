/**
 * The controllers: loops that move the objects of the API toward their desired state. Each controller has a folder, whose
 * main file lists the resources that the controller reads and writes.
 *
 * Boundary: a controller reaches the rest of the engine only through the client and the functions in its options. It calls
 * neither other controllers nor the node agent.
 * Invariant: every step starts from the state of the objects and is idempotent, so the next engine repeats a step that a crash
 * interrupted. A crash loses only Events that are still queued, the records that unbound-records has not written yet, and the
 * times from which a controller counts a delay, such as tolerationSeconds.
 */
import type { KindCatalog } from '../api/catalog.ts';
import type { Pause } from '../client/work-queue.ts';
import { type CertificateOptions, startCertificates } from './certificates/certificates.ts';
import { startClusterRoleAggregation } from './cluster-role-aggregation/cluster-role-aggregation.ts';
import type { ControllerName, ControllerOptions } from './controller.ts';
import { startCronJobs } from './cron-job/cron-job.ts';
import { startDaemonSets } from './daemon-set/daemon-set.ts';
import { startDeployments } from './deployment/deployment.ts';
import { startDisruption } from './disruption/disruption.ts';
import { startEndpointSlices } from './endpoint-slice/endpoint-slice.ts';
import { startEndpointSliceMirroring } from './endpoint-slice-mirroring/endpoint-slice-mirroring.ts';
import { startEndpoints } from './endpoints/endpoints.ts';
import { startEventsTtl } from './events-ttl/events-ttl.ts';
import { startGarbageCollector } from './garbage-collector/garbage-collector.ts';
import { startJobs } from './job/job.ts';
import { startNamespaceController } from './namespace/namespace.ts';
import { namespacedResources } from './namespace/namespaced-resources.ts';
import { startNodeLifecycle } from './node-lifecycle/node-lifecycle.ts';
import { startNodeTaints } from './node-taints/node-taints.ts';
import type { VolumeFolders } from './persistent-volumes/local-path.ts';
import { startPersistentVolumes } from './persistent-volumes/persistent-volumes.ts';
import { startPodGc } from './pod-gc/pod-gc.ts';
import { type RecordLimits, startRecordLimits } from './record-limits/record-limits.ts';
import { startReplicaSets, startReplicationControllers } from './replicas/replicas.ts';
import { countedResources } from './resource-quota/counted-resources.ts';
import { startResourceQuotas } from './resource-quota/resource-quota.ts';
import { startRootCaPublisher } from './root-ca/root-ca.ts';
import { startServiceAccountController } from './service-account/service-account.ts';
import { type IssueLegacyToken, startServiceAccountTokens } from './service-account-tokens/service-account-tokens.ts';
import { startServiceAddresses } from './service-addresses/service-addresses.ts';
import { startServiceCidrs } from './service-cidrs/service-cidrs.ts';
import { startServiceLoadBalancers } from './service-load-balancers/service-load-balancers.ts';
import { startStatefulSets } from './stateful-set/stateful-set.ts';
import { startSystemObjects } from './system-objects/system-objects.ts';
import { startTaintEviction } from './taint-eviction/taint-eviction.ts';
import { startTtlAfterFinished } from './ttl-after-finished/ttl-after-finished.ts';
import { startUnboundRecords } from './unbound-records/unbound-records.ts';

/** Starts all controllers. Resolves once they have read the objects that exist at the start, except record-limits, which is not awaited. */
export async function startControllers({
  optionsOf,
  catalog,
  noMorePods,
  ...options
}: {
  optionsOf: (controller: ControllerName) => ControllerOptions;
  catalog: KindCatalog;
  caPem: string;
  issueLegacyToken: IssueLegacyToken;
  /** Creates missing system objects, and corrects the Services `kubernetes` and `kube-dns`. */
  bootstrap: () => Promise<void>;
  recordLimits: RecordLimits;
  folders: VolumeFolders;
  authority: CertificateOptions['authority'];
  authorizer: CertificateOptions['authorizer'];
  /** How many terminated Pods to keep: 0 means all, and undefined means DEFAULT_TERMINATED_PODS. */
  terminatedPods?: number;
  /**
   * While this pause is active, controllers create no Pods, so that `lifepod down` does not wait for replacements of the Pods that it ends.
   */
  noMorePods?: Pause;
}): Promise<void> {
  const creatorOf = (controller: ControllerName): ControllerOptions => ({ ...optionsOf(controller), noMorePods });
  // Do not await: there may be many records, and nothing at startup depends on their deletion.
  void startRecordLimits({ ...optionsOf('pod-record-controller'), limits: options.recordLimits });
  await Promise.all([
    startNamespaceController({ ...optionsOf('namespace-controller'), resources: catalog.view(namespacedResources) }),
    startGarbageCollector({ ...optionsOf('generic-garbage-collector'), catalog }),
    startCertificates({ ...optionsOf('certificate-controller'), ...options }),
    startClusterRoleAggregation(optionsOf('clusterrole-aggregation-controller')),
    startServiceAccountController(optionsOf('service-account-controller')),
    startServiceAccountTokens({ ...optionsOf('kube-controller-manager'), ...options }),
    startRootCaPublisher({ ...optionsOf('root-ca-cert-publisher'), ...options }),
    startSystemObjects({ ...optionsOf('system-object-controller'), ...options }),
    startCronJobs(creatorOf('cronjob-controller')),
    startDaemonSets(creatorOf('daemon-set-controller')),
    startDeployments(optionsOf('deployment-controller')),
    startDisruption({ ...optionsOf('disruption-controller'), catalog }),
    startJobs(creatorOf('job-controller')),
    startEndpoints(optionsOf('endpoint-controller')),
    startEndpointSlices(optionsOf('endpointslice-controller')),
    startEndpointSliceMirroring(optionsOf('endpointslicemirroring-controller')),
    startEventsTtl(optionsOf('event-ttl-controller')),
    startPodGc({ ...optionsOf('pod-garbage-collector'), ...options }),
    startResourceQuotas({ ...optionsOf('resourcequota-controller'), resources: catalog.view(countedResources) }),
    startReplicaSets(creatorOf('replicaset-controller')),
    startReplicationControllers(creatorOf('replication-controller')),
    startStatefulSets(creatorOf('statefulset-controller')),
    startPersistentVolumes({ ...optionsOf('persistent-volume-binder'), ...options }),
    startServiceAddresses(optionsOf('ipallocator-repair-controller')),
    startServiceCidrs(optionsOf('service-cidrs-controller')),
    startServiceLoadBalancers(optionsOf('service-controller')),
    startNodeLifecycle(optionsOf('node-controller')),
    startNodeTaints(optionsOf('node-controller')),
    startTaintEviction(optionsOf('node-controller')),
    startTtlAfterFinished(optionsOf('ttl-after-finished-controller')),
    startUnboundRecords(optionsOf('unbound-record-controller')),
  ]);
}
