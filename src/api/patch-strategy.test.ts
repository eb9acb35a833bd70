import { expect, it } from 'vitest';
import { applyPatch } from '../machinery/patch/patch.ts';
import { patchStrategies, strategyFor } from './patch-strategy.ts';
import { schemaTypes } from './schema.ts';

it('every patch strategy belongs to a list field of the schema that has the merge key', () => {
  for (const [key, { mergeKey }] of Object.entries(patchStrategies)) {
    const [type = '', field = ''] = key.split('.');
    const shape = schemaTypes[type]?.[field]?.shape;
    if (typeof shape !== 'object' || !('array' in shape)) throw new Error(`${key} is not a list`);
    const element = typeof shape.array === 'object' && 'ref' in shape.array ? shape.array.ref : undefined;
    expect(element === undefined, key).toBe(mergeKey === undefined);
    if (element !== undefined) expect(Object.keys(schemaTypes[element] ?? {}), key).toContain(mergeKey);
  }
});

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
  expect(applyPatch('application/strategic-merge-patch+json', pod, body, strategyFor('Pod'))).toEqual({
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
  expect(strategyFor('Pod')('toString')).toBeUndefined();
  expect(strategyFor('NoSuchType')('spec')).toBeUndefined();
});
