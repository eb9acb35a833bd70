/** NodeMetrics: the resource usage of a node. Source: metrics.k8s.io/v1beta1. */
import type { NodeMetrics } from '../../../generated/types.ts';
import type { KindDefinition } from '../../../kind.ts';
import { NODES } from '../../../resources.ts';
import { METRICS, measured, usageColumns, usageQuantities } from '../usage.ts';

export const nodeMetricsKind: KindDefinition<NodeMetrics> = {
  ...METRICS,
  kind: 'NodeMetrics',
  plural: 'nodes',
  singular: '',
  shortNames: [],
  categories: [],
  namespaced: false,
  schema: 'NodeMetrics',
  computed: {
    from: NODES,
    make: (node, usage) =>
      node.metadata.name === usage.node
        ? { ...measured(node, usage), kind: 'NodeMetrics', usage: usageQuantities(usage) }
        : undefined,
  },
  validateCreate: () => [],
  validateUpdate: () => [],
  subresources: {},
  columns: usageColumns,
  row: ({ metadata, usage, window }) => [metadata.name, usage?.['cpu'] ?? '', usage?.['memory'] ?? '', window ?? ''],
};
