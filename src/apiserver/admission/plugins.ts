/** Lists the admission plugins in the order in which they are called. Upstream's plugins have the order of v1.33. */
import { certificateRequests } from './certificates/certificate-requests.ts';
import { certificateApproval, certificateSigning } from './certificates/signer-rights.ts';
import { defaultIngressClass } from './default-ingress-class.ts';
import { defaultStorageClass } from './default-storage-class.ts';
import { limitRanger } from './limit-ranger.ts';
import { namespaceLifecycle } from './namespace-lifecycle.ts';
import { nodeRestriction } from './node-restriction/node-restriction.ts';
import { claimResize } from './persistent-volume-claim-resize.ts';
import type { PluginFactory } from './plugin.ts';
import { podSecurity } from './pod-security.ts';
import { priority } from './priority.ts';
import { rbacEscalation } from './rbac-escalation.ts';
import { resourceQuota } from './resource-quota.ts';
import { runtimeClass } from './runtime-class.ts';
import { serviceAccount } from './service-account.ts';
import { serviceAllocation } from './services/service-allocation.ts';

export const admissionPlugins: readonly PluginFactory[] = [
  rbacEscalation,
  namespaceLifecycle,
  limitRanger,
  nodeRestriction,
  serviceAccount,
  podSecurity,
  priority,
  defaultStorageClass,
  claimResize,
  runtimeClass,
  certificateApproval,
  certificateSigning,
  certificateRequests,
  defaultIngressClass,
  serviceAllocation,
  resourceQuota,
];
