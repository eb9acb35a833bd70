/** To add a kind, create its folder and list it here. */
import { controllerRevisionKind } from './apps/v1/controller-revision/index.ts';
import { daemonSetKind } from './apps/v1/daemon-set/index.ts';
import { deploymentKind } from './apps/v1/deployment/index.ts';
import { replicaSetKind } from './apps/v1/replica-set/index.ts';
import { statefulSetKind } from './apps/v1/stateful-set/index.ts';
import { selfSubjectReviewKind } from './authentication.k8s.io/v1/self-subject-review/index.ts';
import { tokenReviewKind } from './authentication.k8s.io/v1/token-review/index.ts';
import { localSubjectAccessReviewKind } from './authorization.k8s.io/v1/local-subject-access-review/index.ts';
import { selfSubjectAccessReviewKind } from './authorization.k8s.io/v1/self-subject-access-review/index.ts';
import { selfSubjectRulesReviewKind } from './authorization.k8s.io/v1/self-subject-rules-review/index.ts';
import { subjectAccessReviewKind } from './authorization.k8s.io/v1/subject-access-review/index.ts';
import { horizontalPodAutoscalerV1Kind } from './autoscaling/v1/horizontal-pod-autoscaler/index.ts';
import { horizontalPodAutoscalerKind } from './autoscaling/v2/horizontal-pod-autoscaler/index.ts';
import { cronJobKind } from './batch/v1/cron-job/index.ts';
import { jobKind } from './batch/v1/job/index.ts';
import { anyKind } from './catalog.ts';
import { certificateSigningRequestKind } from './certificates.k8s.io/v1/certificate-signing-request/index.ts';
import { leaseKind } from './coordination.k8s.io/v1/lease/index.ts';
import { bindingKind } from './core/v1/binding/index.ts';
import { componentStatusKind } from './core/v1/component-status/index.ts';
import { configMapKind } from './core/v1/config-map/index.ts';
import { endpointsKind } from './core/v1/endpoints/index.ts';
import { eventKind } from './core/v1/event/index.ts';
import { limitRangeKind } from './core/v1/limit-range/index.ts';
import { namespaceKind } from './core/v1/namespace/index.ts';
import { nodeKind } from './core/v1/node/index.ts';
import { persistentVolumeKind } from './core/v1/persistent-volume/index.ts';
import { persistentVolumeClaimKind } from './core/v1/persistent-volume-claim/index.ts';
import { podKind } from './core/v1/pod/index.ts';
import { podTemplateKind } from './core/v1/pod-template/index.ts';
import { replicationControllerKind } from './core/v1/replication-controller/index.ts';
import { resourceQuotaKind } from './core/v1/resource-quota/index.ts';
import { secretKind } from './core/v1/secret/index.ts';
import { serviceKind } from './core/v1/service/index.ts';
import { serviceAccountKind } from './core/v1/service-account/index.ts';
import { endpointSliceKind } from './discovery.k8s.io/v1/endpoint-slice/index.ts';
import { eventsV1EventKind } from './events.k8s.io/v1/event/index.ts';
import type { KindDefinition } from './kind.ts';
import { podRecordKind } from './lifepod.io/v1/pod-record/index.ts';
import { nodeMetricsKind } from './metrics.k8s.io/v1beta1/node-metrics/index.ts';
import { podMetricsKind } from './metrics.k8s.io/v1beta1/pod-metrics/index.ts';
import { ingressKind } from './networking.k8s.io/v1/ingress/index.ts';
import { ingressClassKind } from './networking.k8s.io/v1/ingress-class/index.ts';
import { ipAddressKind } from './networking.k8s.io/v1/ip-address/index.ts';
import { networkPolicyKind } from './networking.k8s.io/v1/network-policy/index.ts';
import { serviceCidrKind } from './networking.k8s.io/v1/service-cidr/index.ts';
import { runtimeClassKind } from './node.k8s.io/v1/runtime-class/index.ts';
import { podDisruptionBudgetKind } from './policy/v1/pod-disruption-budget/index.ts';
import { clusterRoleKind } from './rbac.authorization.k8s.io/v1/cluster-role/index.ts';
import { clusterRoleBindingKind } from './rbac.authorization.k8s.io/v1/cluster-role-binding/index.ts';
import { roleKind } from './rbac.authorization.k8s.io/v1/role/index.ts';
import { roleBindingKind } from './rbac.authorization.k8s.io/v1/role-binding/index.ts';
import { priorityClassKind } from './scheduling.k8s.io/v1/priority-class/index.ts';
import { storageClassKind } from './storage.k8s.io/v1/storage-class/index.ts';

/** The kinds that an engine serves from its start. */
export const kinds: readonly KindDefinition[] = [
  anyKind(bindingKind),
  anyKind(componentStatusKind),
  anyKind(configMapKind),
  anyKind(endpointsKind),
  anyKind(eventKind),
  anyKind(limitRangeKind),
  anyKind(namespaceKind),
  anyKind(nodeKind),
  anyKind(persistentVolumeKind),
  anyKind(persistentVolumeClaimKind),
  anyKind(podKind),
  anyKind(podTemplateKind),
  anyKind(replicationControllerKind),
  anyKind(resourceQuotaKind),
  anyKind(secretKind),
  anyKind(serviceKind),
  anyKind(serviceAccountKind),
  anyKind(controllerRevisionKind),
  anyKind(daemonSetKind),
  anyKind(statefulSetKind),
  anyKind(deploymentKind),
  anyKind(replicaSetKind),
  anyKind(selfSubjectReviewKind),
  anyKind(tokenReviewKind),
  anyKind(localSubjectAccessReviewKind),
  anyKind(selfSubjectAccessReviewKind),
  anyKind(selfSubjectRulesReviewKind),
  anyKind(subjectAccessReviewKind),
  anyKind(horizontalPodAutoscalerKind),
  anyKind(horizontalPodAutoscalerV1Kind),
  anyKind(cronJobKind),
  anyKind(jobKind),
  anyKind(certificateSigningRequestKind),
  anyKind(leaseKind),
  anyKind(endpointSliceKind),
  anyKind(networkPolicyKind),
  anyKind(ingressClassKind),
  anyKind(ingressKind),
  anyKind(ipAddressKind),
  anyKind(serviceCidrKind),
  anyKind(runtimeClassKind),
  anyKind(podDisruptionBudgetKind),
  anyKind(clusterRoleKind),
  anyKind(clusterRoleBindingKind),
  anyKind(roleKind),
  anyKind(roleBindingKind),
  anyKind(priorityClassKind),
  anyKind(storageClassKind),
  anyKind(eventsV1EventKind),
  anyKind(podRecordKind),
  anyKind(nodeMetricsKind),
  anyKind(podMetricsKind),
];
