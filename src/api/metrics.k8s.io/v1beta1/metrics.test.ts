import { expect, it } from 'vitest';
import type { NodeUsage } from '../../../ports/node-reports.ts';
import { NOW } from '../../testing.ts';
import { nodeMetricsKind } from './node-metrics/index.ts';
import { podMetricsKind } from './pod-metrics/index.ts';

const used = { cpuNanoCores: 1_500_000.4, memoryWorkingSetBytes: 2047 };
const shown = { cpu: '1500u', memory: '1Ki' };
const usage: NodeUsage = {
  ...used,
  node: 'n',
  at: NOW,
  windowMillis: 10_000,
  pods: [
    { ...used, name: 'web', namespace: 'other', containers: [{ ...used, name: 'wrong' }] },
    { ...used, name: 'web', namespace: 'a', containers: [{ ...used, name: 'app' }] },
    { ...used, name: 'idle', namespace: 'a', containers: [] },
  ],
};
const metricsOf = (kind: 'Node' | 'Pod', name: string, namespace?: string) => {
  const object = { apiVersion: 'v1', kind, metadata: { name, namespace } };
  const { computed } = kind === 'Node' ? nodeMetricsKind : podMetricsKind;
  return computed !== undefined && 'make' in computed ? computed.make(object, usage) : undefined;
};

it('only the node that reports the usage has metrics', () => {
  expect(metricsOf('Node', 'n')).toMatchObject({ kind: 'NodeMetrics', metadata: { name: 'n' }, usage: shown });
  expect(metricsOf('Node', 'm')).toBeUndefined();
});

it('only a Pod of that name and namespace with containers that use resources has metrics', () => {
  const containers = [{ name: 'app', usage: shown }];
  expect(metricsOf('Pod', 'web', 'a')).toMatchObject({ kind: 'PodMetrics', window: '10s', containers });
  expect(metricsOf('Pod', 'idle', 'a')).toBeUndefined();
  expect(metricsOf('Pod', 'other', 'a')).toBeUndefined();
});
