import { expect, it } from 'vitest';
import { applyPatch } from '../machinery/patch/patch.ts';
import { strategyFor } from './patch-strategy.ts';

it('patch strategies apply on every level of a Pod', () => {
  const pod = {
    metadata: { name: 'p', finalizers: ['a'], labels: { x: '1' } },
    spec: {
      containers: [{ name: 'c', env: [{ name: 'A', value: '1' }], args: ['1'], ports: [{ containerPort: 80 }] }],
      tolerations: [{ key: 'a' }],
    },
  };
  const body = {
    metadata: { finalizers: ['b'], labels: { y: '2' } },
    spec: {
      containers: [
        { name: 'c', env: [{ name: 'B', value: '2' }], args: ['2'], ports: [{ containerPort: 80, name: 'http' }] },
      ],
      tolerations: [{ key: 'b' }],
    },
  };
  expect(
    applyPatch('application/strategic-merge-patch+json', pod, body, strategyFor('io.k8s.api.core.v1.Pod')),
  ).toEqual({
    metadata: { name: 'p', finalizers: ['b', 'a'], labels: { x: '1', y: '2' } },
    spec: {
      containers: [
        {
          name: 'c',
          env: [
            { name: 'B', value: '2' },
            { name: 'A', value: '1' },
          ],
          args: ['2'],
          ports: [{ containerPort: 80, name: 'http' }],
        },
      ],
      tolerations: [{ key: 'b' }],
    },
  });
});

it('unknown fields and types have no patch strategy', () => {
  expect(strategyFor('io.k8s.api.core.v1.Pod')('toString')).toBeUndefined();
  expect(strategyFor('io.k8s.api.core.v1.NoSuchType')('spec')).toBeUndefined();
});

it('the conditions of a PersistentVolumeClaim are merged by their type', () => {
  const status = strategyFor('io.k8s.api.core.v1.PersistentVolumeClaim')('status')?.fields;
  expect(status?.('conditions')).toMatchObject({ strategy: 'merge', mergeKey: 'type' });
});

it('defer containers have the strategies of containers', () => {
  const fields = strategyFor('io.k8s.api.core.v1.PodSpec')('deferContainers')?.fields;
  expect(fields?.('volumeMounts')).toMatchObject({ strategy: 'merge', mergeKey: 'mountPath' });
  expect(fields?.('onReasons')?.strategy).toBeUndefined();
});
