/** The admission plugins of the API server, in the order in which they are called. Source: the order of v1.33's plugins. */
import { defaultStorageClass } from './default-storage-class.ts';
import { namespaceLifecycle } from './namespace-lifecycle.ts';
import { nodeRestriction } from './node-restriction.ts';
import { claimResize } from './persistent-volume-claim-resize.ts';
import type { PluginFactory } from './plugin.ts';
import { priority } from './priority.ts';
import { runtimeClass } from './runtime-class.ts';
import { serviceAccount } from './service-account.ts';
import { serviceAllocation } from './service-allocation.ts';

export const admissionPlugins: readonly PluginFactory[] = [
  namespaceLifecycle,
  nodeRestriction,
  serviceAccount,
  priority,
  defaultStorageClass,
  claimResize,
  runtimeClass,
  serviceAllocation,
];
