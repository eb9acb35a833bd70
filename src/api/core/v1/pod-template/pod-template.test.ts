import { describe, expect, it } from 'vitest';
import { created, headings, row, updated } from '../../../testing.ts';
import { podTemplateKind } from './index.ts';

const app = { name: 'app', image: 'busybox:1.28' };
const template = { metadata: { labels: { tier: 'web', app: 'x' } }, spec: { containers: [app] } };

it('a PodTemplate gets the defaults of a Pod, except those that depend on the creation of a Pod', () => {
  const spec = {
    containers: [{ ...app, resources: { limits: { cpu: '1' } } }],
    deferContainers: [{ ...app, name: 'last' }],
  };
  const { object, errors } = created(podTemplateKind, { template: { spec } });
  expect(errors).toEqual([]);
  expect(object.metadata.generation).toBe(1);
  expect(object.template?.spec).toEqual({
    restartPolicy: 'Always',
    dnsPolicy: 'ClusterFirst',
    schedulerName: 'default-scheduler',
    securityContext: {},
    terminationGracePeriodSeconds: 30,
    prePullDeferImages: true,
    preStopPolicy: 'Concurrent',
    containers: [expect.objectContaining({ imagePullPolicy: 'IfNotPresent', resources: { limits: { cpu: '1' } } })],
    deferContainers: [expect.objectContaining({ name: 'last', trigger: 'PreExit', restartPolicy: 'Never' })],
  });
});

it('a PodTemplate is validated like a Pod, with the paths of the template', () => {
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

it('a PodTemplate in the host network may omit the host port, which the Pods get by default, but not name another port', () => {
  const spec = (hostPort?: number) => ({
    hostNetwork: true,
    containers: [{ ...app, ports: [{ containerPort: 80, ...(hostPort === undefined ? {} : { hostPort }) }] }],
  });
  expect(created(podTemplateKind, { template: { spec: spec() } }).errors).toEqual([]);
  expect(created(podTemplateKind, { template: { spec: spec(81) } }).errors).toEqual([
    'template.spec.containers[0].ports[0].hostPort: Invalid value: 81: must match `containerPort` when `hostNetwork` is true',
  ]);
});

it('a PodTemplate counts changes of its template in the generation, and warns like a Pod', () => {
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

it('the table of PodTemplates has the columns of v1.33', () => {
  expect(headings(podTemplateKind).all).toBe('NAME | CONTAINERS | IMAGES | POD LABELS');
  const two = { ...template, spec: { containers: [app, { name: 'b', image: 'c:1' }] } };
  expect(row(podTemplateKind, { template: two })).toEqual(['a', 'app,b', 'busybox:1.28,c:1', 'app=x,tier=web']);
});

describe('defer containers of a template', () => {
  const ENTRIES = 'pod.alpha.kubernetes.io/defer-containers';
  const SETTINGS = 'pod.alpha.kubernetes.io/defer-settings';
  const entry = { name: 'last', image: 'busybox:1.28', timeoutSeconds: 5 };
  const text = JSON.stringify([entry]);
  const given = (annotations: Record<string, string>, spec: object = {}) => ({
    template: { metadata: { annotations }, spec: { containers: [app], ...spec } },
  });
  const warningsOf = (old: ReturnType<typeof given>, now: ReturnType<typeof given>): string[] =>
    podTemplateKind.warnings?.(updated(podTemplateKind, old, now).object, created(podTemplateKind, old).object) ?? [];

  it('a PodTemplate stores defer containers in the form in which they were sent', () => {
    const annotations = { [ENTRIES]: text, [SETTINGS]: '{"preStopPolicy": "AfterPreExit"}' };
    const { object, errors } = created(podTemplateKind, given(annotations));
    expect(errors).toEqual([]);
    expect(object.template?.metadata?.annotations).toEqual(annotations);
    expect(JSON.stringify(object.template?.spec)).not.toMatch(/defer|preStop/i);
  });

  it.each<[string, Record<string, string>, object, string]>([
    ['malformed JSON of entries', { [ENTRIES]: '[{' }, {}, `template.annotations[${ENTRIES}]: Invalid value: "[{": `],
    [
      'malformed JSON of settings',
      { [SETTINGS]: '[]' },
      {},
      `template.annotations[${SETTINGS}]: Invalid value: "[]": `,
    ],
    [
      'an invalid entry',
      { [ENTRIES]: '[{"name": "app", "image": "x"}]' },
      {},
      'template.spec.deferContainers[0].name: Duplicate value: "app"',
    ],
    [
      'an invalid setting',
      { [SETTINGS]: '{"preStopPolicy": "Later"}' },
      {},
      'template.spec.preStopPolicy: Unsupported value: "Later"',
    ],
    [
      'entries that differ from the field',
      { [ENTRIES]: '[]' },
      { deferContainers: [entry] },
      `template.annotations[${ENTRIES}]: Invalid value: "[]": must be equal to spec.deferContainers if both are set`,
    ],
    [
      'a setting that differs from the field',
      { [SETTINGS]: '{"prePullDeferImages": false}' },
      { prePullDeferImages: true },
      `template.annotations[${SETTINGS}]: Invalid value: "{\\"prePullDeferImages\\": false}": must be equal to spec.prePullDeferImages if both are set`,
    ],
  ])(
    'both forms of defer containers are validated when a PodTemplate is created: %s',
    (_, annotations, spec, expected) => {
      const { errors } = created(podTemplateKind, given(annotations, spec));
      expect(errors).toEqual([expect.stringContaining(expected)]);
    },
  );

  it('an update of a PodTemplate may change the annotation to another valid value', () => {
    const old = given({ [ENTRIES]: text });
    expect(updated(podTemplateKind, old, given({ [ENTRIES]: '[]' })).errors).toEqual([]);
    expect(updated(podTemplateKind, old, given({ [ENTRIES]: '[{' })).errors).toEqual([
      expect.stringContaining(`template.annotations[${ENTRIES}]: Invalid value: "[{"`),
    ]);
  });

  it('the two forms in a PodTemplate are compared only on create; an update that makes them differ returns a warning', () => {
    const old = given({ [ENTRIES]: text }, { deferContainers: [entry] });
    const now = given({ [ENTRIES]: text }, { deferContainers: [{ ...entry, image: 'busybox:2' }] });
    expect(updated(podTemplateKind, old, now).errors).toEqual([]);
    expect(warningsOf(old, now)).toEqual([
      `template.annotations[${ENTRIES}]: must be equal to spec.deferContainers if both are set; otherwise no Pod can be created from the template`,
    ]);
  });

  it('an update without the fields of defer containers removes them from a PodTemplate and returns a warning', () => {
    const old = given({}, { deferContainers: [entry], postExitGracePeriodSeconds: 5 });
    const { object, errors } = updated(podTemplateKind, old, given({}));
    expect(errors).toEqual([]);
    expect(JSON.stringify(object.template?.spec)).not.toMatch(/defer|preStop|postExit/i);
    expect(warningsOf(old, given({}))).toEqual([
      `template.spec: the update omits and therefore removes deferContainers, postExitGracePeriodSeconds, preStopPolicy, prePullDeferImages; to restore them, apply the manifest again; clients whose types lack these fields, such as kubectl rollout undo, keep only the annotations ${ENTRIES} and ${SETTINGS}, which can set them`,
    ]);
  });

  it('an update that drops the field and keeps the annotation returns no warning, because Pods still get the entries', () => {
    const old = given({ [ENTRIES]: text }, { deferContainers: [entry] });
    expect(warningsOf(old, given({ [ENTRIES]: text }))).toEqual([]);
  });
});
