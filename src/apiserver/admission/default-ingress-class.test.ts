import { expect, test } from 'vitest';
import type { Ingress } from '../../api/generated/types.ts';
import { INGRESSES } from '../../api/resources.ts';
import { ref, startRegistry } from '../registry/testing.ts';

const GROUP = 'networking.k8s.io';
const apiVersion = `${GROUP}/v1`;
const spec = { defaultBackend: { service: { name: 'web', port: { number: 80 } } } };

test('a new Ingress without a class gets the default class, if there is one', async () => {
  const { registry } = await startRegistry();
  const classOf = async (name: string, changes: object = {}, annotations?: Record<string, string>) => {
    const ingress = { apiVersion, kind: 'Ingress', metadata: { name, annotations }, spec: { ...spec, ...changes } };
    return ((await registry.create(INGRESSES, 'default', ingress)) as Ingress).spec?.ingressClassName;
  };
  expect(await classOf('a')).toBeUndefined();
  await registry.create(ref('ingressclasses', GROUP), undefined, {
    apiVersion,
    kind: 'IngressClass',
    metadata: { name: 'usual', annotations: { 'ingressclass.kubernetes.io/is-default-class': 'true' } },
    spec: { controller: 'a.b/c' },
  } as never);
  expect(await classOf('b')).toBe('usual');
  expect(await classOf('c', { ingressClassName: 'other' })).toBe('other');
  expect(await classOf('d', {}, { 'kubernetes.io/ingress.class': 'other' })).toBeUndefined();
});
