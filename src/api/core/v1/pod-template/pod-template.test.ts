import { expect, it } from 'vitest';
import { created, headings, row, updated } from '../../../testing.ts';
import { podTemplateKind } from './index.ts';

const app = { name: 'app', image: 'busybox:1.28' };
const template = { metadata: { labels: { tier: 'web', app: 'x' } }, spec: { containers: [app] } };

it('has the defaults of a Pod, but for what a Pod gets when it is made', () => {
  const spec = {
    containers: [{ ...app, resources: { limits: { cpu: '1' } } }],
    deferContainers: [{ ...app, name: 'last' }],
  };
  const { object, errors } = created(podTemplateKind, { template: { spec } });
  expect(errors).toEqual([]);
  expect(object.metadata.generation).toBe(1);
  expect(object.template?.spec).toEqual({
    ...{ restartPolicy: 'Always', dnsPolicy: 'ClusterFirst', schedulerName: 'default-scheduler', securityContext: {} },
    ...{ terminationGracePeriodSeconds: 30, prePullDeferImages: true, preStopPolicy: 'Concurrent' },
    containers: [expect.objectContaining({ imagePullPolicy: 'IfNotPresent', resources: { limits: { cpu: '1' } } })],
    deferContainers: [expect.objectContaining({ name: 'last', trigger: 'PreExit', restartPolicy: 'Never' })],
  });
});

it('is judged as a Pod, with the paths of the template', () => {
  const spec = {
    containers: [{ ...app, name: 'Bad' }],
    deferContainers: [app],
    ephemeralContainers: [{ ...app, name: 'e' }],
  };
  const bad = { metadata: { labels: { 'not/a/key': '' } }, spec };
  const { errors } = created(podTemplateKind, { template: bad });
  expect(errors.map((error) => error.split(': ').slice(0, 2).join(': '))).toEqual([
    'template.labels: Invalid value',
    'template.spec.containers[0].name: Invalid value',
    'template.spec.ephemeralContainers: Forbidden',
  ]);
  expect(created(podTemplateKind, {}).errors).toEqual(['template.spec.containers: Required value']);
});

it('counts the changes of its template, and warns of what is hardly meant', () => {
  const changed = { ...template, spec: { ...template.spec, restartPolicy: 'Never' } };
  expect(updated(podTemplateKind, { template }, { template }).object.metadata.generation).toBe(1);
  expect(updated(podTemplateKind, { template }, { template: changed }).object.metadata.generation).toBe(2);
  const nodeSelector = { 'beta.kubernetes.io/os': 'linux' };
  const { object } = created(podTemplateKind, { template: { spec: { ...template.spec, nodeSelector } } });
  expect(podTemplateKind.warnings?.(object)).toEqual([
    'template.spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead',
  ]);
  expect(podTemplateKind.warnings?.(object, object)).toEqual([]);
});

it('is shown as kubectl knows it', () => {
  expect(headings(podTemplateKind).all).toBe('NAME | CONTAINERS | IMAGES | POD LABELS');
  const two = { ...template, spec: { containers: [app, { name: 'b', image: 'c:1' }] } };
  expect(row(podTemplateKind, { template: two })).toEqual(['a', 'app,b', 'busybox:1.28,c:1', 'app=x,tier=web']);
});
