/** PodMetrics: the resource usage of a Pod's running containers. Source: metrics.k8s.io/v1beta1. */
import { addQuantities, formatQuantity, quantityOrZero, zeroQuantity } from '../../../../machinery/quantity.ts';
import { kind } from '../../../declaration.ts';
import type { ContainerMetrics, PodMetrics } from '../../../generated/types.ts';
import { PODS } from '../../../resources.ts';
import { METRICS_VERSION, measured, usageColumns, usageQuantities } from '../usage.ts';

const sumOf = (containers: readonly ContainerMetrics[], resource: string): string =>
  formatQuantity(
    containers
      .map(({ usage }) => quantityOrZero(usage[resource]))
      .reduce((sum, each) => addQuantities(each, sum), zeroQuantity),
  );

export const podMetricsKind = kind<PodMetrics>(METRICS_VERSION, 'PodMetrics', {
  plural: 'pods',
  singular: '',
  computed: {
    from: PODS,
    make(pod, usage) {
      const { name, namespace } = pod.metadata;
      const used = usage.pods.find((each) => each.name === name && each.namespace === namespace);
      if (used === undefined || used.containers.length === 0) return undefined;
      const containers = used.containers.map((each) => ({ name: each.name, usage: usageQuantities(each) }));
      return { ...measured(pod, usage), kind: 'PodMetrics', containers };
    },
  },
  columns: usageColumns(({ containers }, resource) => sumOf(containers ?? [], resource)),
});
