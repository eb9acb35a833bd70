/** NodeMetrics: the resource usage of a node. Source: metrics.k8s.io/v1beta1. */
import { kind } from '../../../declaration.ts';
import type { NodeMetrics } from '../../../generated/types.ts';
import { NODES } from '../../../resources.ts';
import { METRICS_VERSION, measured, usageColumns, usageQuantities } from '../usage.ts';

export const nodeMetricsKind = kind<NodeMetrics>(METRICS_VERSION, 'NodeMetrics', {
  scope: 'Cluster',
  plural: 'nodes',
  singular: '',
  computed: {
    from: NODES,
    make: (node, usage) =>
      node.metadata.name === usage.node
        ? { ...measured(node, usage), kind: 'NodeMetrics', usage: usageQuantities(usage) }
        : undefined,
  },
  columns: usageColumns(({ usage }, resource) => usage?.[resource] ?? ''),
});
