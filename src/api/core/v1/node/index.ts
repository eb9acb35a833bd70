/** The Node: a machine that runs Pods. Source: pkg/registry/core/node and pkg/apis/core of v1.33. */
import { kind } from '../../../declaration.ts';
import type { Node } from '../../../generated/types.ts';
import { onUpdate } from '../../../rules.ts';
import { nodeColumns } from './table.ts';
import { validateNode, validateNodeUpdate } from './validation.ts';

function syncPodCidrs({ spec }: Node): void {
  if (spec === undefined) return;
  if (spec.podCIDR) {
    if (spec.podCIDRs?.[0] !== spec.podCIDR) spec.podCIDRs = [spec.podCIDR];
  } else if (spec.podCIDRs?.[0] !== undefined) {
    spec.podCIDR = spec.podCIDRs[0];
  }
}

export const nodeKind = kind<Node>('v1', 'Node', {
  scope: 'Cluster',
  shortNames: ['no'],
  defaults(node) {
    node.spec ??= {};
    syncPodCidrs(node);
    // By default, the whole capacity is allocatable, because the API server knows of no reserved resources.
    if (node.status?.capacity !== undefined) node.status.allocatable ??= { ...node.status.capacity };
  },
  // Keep the status of a new Node, because a node sends its status when it registers.
  status: { initial: 'asSent', rules: [validateNode, onUpdate(validateNodeUpdate)] },
  rules: [validateNode, onUpdate(validateNodeUpdate)],
  subresources: {
    proxy: {
      verbs: ['get', 'create', 'update', 'patch', 'delete'],
      operation: 'proxyToNode',
      connects: 'NodeProxyOptions',
      subpaths: true,
    },
  },
  selectableFields: (node) => ({ 'spec.unschedulable': String(node.spec?.unschedulable ?? false) }),
  columns: nodeColumns,
});
