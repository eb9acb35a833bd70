import { expect, test } from 'vitest';
import type { PodSpec } from '../../api/generated/types.ts';
import { DEPLOYMENTS, REPLICA_SETS } from '../../api/resources.ts';
import type { KubeObject, ResourceRef } from '../../machinery/meta.ts';
import type { RequestContext } from '../../ports/request.ts';
import { failure, NAMESPACES, object, PODS, pod, ref, startRegistry, TEST_USER } from '../registry/testing.ts';
import type { AdmissionPlugin } from './plugin.ts';
import { admissionPlugins } from './plugins.ts';
import { podSecurity } from './pod-security.ts';

const PREFIX = 'pod-security.kubernetes.io/';

const labelsOf = (labels: Record<string, string>): Record<string, string> =>
  Object.fromEntries(Object.entries(labels).map(([label, value]) => [PREFIX + label, value]));

const container = { name: 'app', image: 'busybox' };
const privileged = (name: string) => ({ name, image: 'busybox', securityContext: { privileged: true } });
const PRIVILEGED: Partial<PodSpec> = { containers: [privileged('app')] };
const DETAIL = 'privileged (container "app" must not set securityContext.privileged=true)';

async function startWith(labels: Record<string, string>, more: AdmissionPlugin[] = []) {
  const started = await startRegistry({ admission: [...admissionPlugins, ...more.map((plugin) => () => plugin)] });
  const { registry, backend } = started;
  const warnings: string[] = [];
  const options = { onWarning: (text: string) => void warnings.push(text) };
  const label = (changed: Record<string, string | null>) =>
    registry.patch(
      NAMESPACES,
      undefined,
      'default',
      'application/merge-patch+json',
      { metadata: { labels: labelsOf(changed as Record<string, string>) } },
      options,
    );
  await label(labels);
  const create = async (created: KubeObject, resource: ResourceRef = PODS, dryRun = false) => {
    const audit = new Map<string, string>();
    const { signal } = new AbortController();
    const context: RequestContext = {
      user: TEST_USER,
      source: 'client',
      verb: 'create',
      resource,
      namespace: 'default',
      signal,
      audit,
    };
    const error = await backend.create(context, created, { ...options, dryRun }).then(
      () => undefined,
      ({ message }) => message as string,
    );
    return { audit: Object.fromEntries(audit), error };
  };
  return { ...started, warnings, options, label, create };
}

test('a Pod that violates the enforced level is rejected with all violations, and is not stored', async () => {
  const { registry, create } = await startWith({
    enforce: 'restricted',
    'enforce-version': 'v1.33',
    warn: 'restricted',
  });
  const cause = [
    DETAIL,
    'allowPrivilegeEscalation != false (container "app" must set securityContext.allowPrivilegeEscalation=false)',
    'unrestricted capabilities (container "app" must set securityContext.capabilities.drop=["ALL"])',
    'runAsNonRoot != true (pod or container "app" must set securityContext.runAsNonRoot=true)',
    'seccompProfile (pod or container "app" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")',
  ].join(', ');
  expect(await failure(registry.create(PODS, 'default', pod('a', PRIVILEGED)))).toEqual({
    code: 403,
    reason: 'Forbidden',
    message: `pods "a" is forbidden: violates PodSecurity "restricted:v1.33": ${cause}`,
  });
  const generated = object('Pod', '', { spec: PRIVILEGED }, { generateName: 'a-' });
  expect((await create(generated)).error).toMatch(/^pods "a-[a-z0-9]{5}" is forbidden: violates PodSecurity/);
  expect((await create(pod('a', PRIVILEGED), PODS, true)).error).toContain('violates PodSecurity');
  expect(await registry.list(PODS, { namespace: 'default' })).toMatchObject({ items: [] });
});

test('defer containers, also those in the annotation, and init containers in the older annotation are evaluated', async () => {
  const { create } = await startWith({ enforce: 'baseline' });
  const inField = pod('a', { deferContainers: [privileged('entry')] });
  const inAnnotation = (key: string, name: string) =>
    pod('a', {}, { annotations: { [key]: JSON.stringify([privileged(name)]) } });
  for (const [made, name] of [
    [inField, 'entry'],
    [inAnnotation('pod.alpha.kubernetes.io/defer-containers', 'entry'), 'entry'],
    [inAnnotation('pod.beta.kubernetes.io/init-containers', 'init'), 'init'],
  ] as const) {
    expect((await create(made)).error).toBe(
      `pods "a" is forbidden: violates PodSecurity "baseline:latest": privileged (container "${name}" must not set securityContext.privileged=true)`,
    );
  }
});

test('a namespace without labels allows every Pod, and the audit event says so', async () => {
  const { create, warnings } = await startWith({});
  expect(await create(pod('a', PRIVILEGED))).toEqual({
    audit: { [`${PREFIX}enforce-policy`]: 'privileged:latest' },
    error: undefined,
  });
  expect(warnings).toEqual([]);
});

test('a Pod that violates the levels of audit and warn is stored, with a warning and an annotation of the audit event', async () => {
  const { create, warnings } = await startWith({ enforce: 'baseline', audit: 'restricted', warn: 'restricted' });
  const { audit, error } = await create(pod('a'));
  expect(error).toBeUndefined();
  expect(warnings).toEqual([
    expect.stringMatching(
      /^would violate PodSecurity "restricted:latest": allowPrivilegeEscalation != false \(container/,
    ),
  ]);
  expect(audit).toEqual({
    [`${PREFIX}enforce-policy`]: 'baseline:latest',
    [`${PREFIX}audit-violations`]: warnings[0],
  });
});

test('a rejected Pod causes an annotation of the audit event, but no warning', async () => {
  const { create, warnings } = await startWith({ enforce: 'baseline', audit: 'baseline', warn: 'baseline' });
  const { audit, error } = await create(pod('a', PRIVILEGED));
  expect(error).toBe(`pods "a" is forbidden: violates PodSecurity "baseline:latest": ${DETAIL}`);
  expect(warnings).toEqual([]);
  expect(audit).toEqual({
    [`${PREFIX}enforce-policy`]: 'baseline:latest',
    [`${PREFIX}audit-violations`]: `would violate PodSecurity "baseline:latest": ${DETAIL}`,
  });
});

test('a Pod or ephemeral container is rejected if its namespace begins to enforce a level after it was evaluated', async () => {
  let meanwhile = (): Promise<unknown> => Promise.resolve();
  const relabel: AdmissionPlugin = {
    name: 'Relabel',
    handles: ({ kind, subresource }) => kind.kind === 'Pod' && subresource !== 'status',
    validate: async () => void (await meanwhile()),
  };
  const { registry, label, create } = await startWith({}, [relabel]);
  await registry.create(PODS, 'default', pod('a'));
  meanwhile = () => label({ enforce: 'baseline' });
  expect((await create(pod('b', PRIVILEGED))).error).toContain('violates PodSecurity "baseline:latest"');
  await label({ enforce: 'privileged' });
  const body = { spec: { ephemeralContainers: [privileged('debug')] } };
  const type = 'application/strategic-merge-patch+json';
  const update = registry.patch(PODS, 'default', 'a', type, body, { subresource: 'ephemeralcontainers' });
  expect((await failure(update)).message).toContain('violates PodSecurity "baseline:latest"');
});

test('updates of a Pod are evaluated if they change an image or add an ephemeral container', async () => {
  const { registry, label } = await startWith({});
  const created = await registry.create(PODS, 'default', pod('a', PRIVILEGED));
  const safe = await registry.create(PODS, 'default', pod('b'));
  await label({ enforce: 'baseline' });
  const patch = (name: string, body: object, subresource?: string) =>
    registry.patch(PODS, 'default', name, 'application/strategic-merge-patch+json', body, { subresource });
  await patch('a', { metadata: { labels: { a: 'b' } } });
  await patch('a', { status: { phase: 'Running' } }, 'status');
  const image = { spec: { containers: [{ name: 'app', image: 'other' }] } };
  expect((await failure(patch('a', image))).message).toBe(
    `pods "a" is forbidden: violates PodSecurity "baseline:latest": ${DETAIL}`,
  );
  await patch('b', image);
  const debug = (ephemeral: object) => ({ spec: { ephemeralContainers: [ephemeral] } });
  expect((await failure(patch('b', debug(privileged('debug')), 'ephemeralcontainers'))).message).toBe(
    'pods "b" is forbidden: violates PodSecurity "baseline:latest": privileged (container "debug" must not set securityContext.privileged=true)',
  );
  await patch('b', debug({ name: 'debug', image: 'busybox' }), 'ephemeralcontainers');
  expect([created.metadata.name, safe.metadata.name]).toEqual(['a', 'b']);
});

const template = (spec: object) => ({ metadata: { labels: { app: 'a' } }, spec: { containers: [container], ...spec } });
const selector = { matchLabels: { app: 'a' } };
const job = (spec: object) => ({ template: template({ restartPolicy: 'Never', ...spec }) });

test.each<[ResourceRef, string, (spec: object) => object]>([
  [ref('podtemplates'), 'PodTemplate', (spec) => ({ template: template(spec) })],
  [ref('replicationcontrollers'), 'ReplicationController', (spec) => ({ spec: { template: template(spec) } })],
  [DEPLOYMENTS, 'Deployment', (spec) => ({ spec: { selector, template: template(spec) } })],
  [REPLICA_SETS, 'ReplicaSet', (spec) => ({ spec: { selector, template: template(spec) } })],
  [ref('daemonsets', 'apps'), 'DaemonSet', (spec) => ({ spec: { selector, template: template(spec) } })],
  [
    ref('statefulsets', 'apps'),
    'StatefulSet',
    (spec) => ({ spec: { selector, serviceName: 's', template: template(spec) } }),
  ],
  [ref('jobs', 'batch'), 'Job', (spec) => ({ spec: job(spec) })],
  [
    ref('cronjobs', 'batch'),
    'CronJob',
    (spec) => ({ spec: { schedule: '* * * * *', jobTemplate: { spec: job(spec) } } }),
  ],
])('the template of %o causes a warning and an annotation, and is stored', async (resource, kind, content) => {
  const started = await startWith({ enforce: 'baseline', audit: 'baseline', warn: 'baseline' });
  const { create, registry, warnings, options } = started;
  const apiVersion = resource.group === '' ? 'v1' : `${resource.group}/v1`;
  const made = { ...object(kind, 'w', content({ deferContainers: [privileged('entry')] })), apiVersion };
  const text =
    'would violate PodSecurity "baseline:latest": privileged (container "entry" must not set securityContext.privileged=true)';
  const { audit, error } = await create(made, resource);
  expect(error).toBeUndefined();
  expect(audit).toEqual({ [`${PREFIX}audit-violations`]: text });
  const ofPodSecurity = () => warnings.splice(0).filter((each) => each.includes('PodSecurity'));
  expect(ofPodSecurity()).toEqual([text]);
  const body = { metadata: { labels: { a: 'b' } } };
  await registry.patch(resource, 'default', 'w', 'application/merge-patch+json', body, options);
  expect(ofPodSecurity()).toEqual([text]);
  await started.label({ audit: null, warn: null } as never);
  await registry.patch(
    resource,
    'default',
    'w',
    'application/merge-patch+json',
    { metadata: { labels: { a: 'c' } } },
    options,
  );
  expect(ofPodSecurity()).toEqual([]);
});

test('invalid labels of a namespace are rejected on create, and on an update that changes them', async () => {
  const { registry, label } = await startWith({});
  const labels = labelsOf({ enforce: 'strict', 'warn-version': '1.33' });
  const level =
    'metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: "strict": must be one of privileged, baseline, restricted';
  const version =
    'metadata.labels[pod-security.kubernetes.io/warn-version]: Invalid value: "1.33": must be "latest" or "v1.x"';
  expect(await failure(registry.create(NAMESPACES, undefined, object('Namespace', 'n', {}, { labels })))).toEqual({
    code: 422,
    reason: 'Invalid',
    message: `Namespace "n" is invalid: [${level}, ${version}]`,
  });
  expect((await failure(label({ enforce: 'strict' }))).message).toBe(`Namespace "default" is invalid: ${level}`);
});

test('invalid labels that a namespace already has enforce restricted, and other labels can still change', async () => {
  const plain = admissionPlugins.filter((factory) => factory !== podSecurity);
  const before = await startRegistry({ admission: plain });
  const labels = labelsOf({ enforce: 'strict' });
  await before.registry.create(NAMESPACES, undefined, object('Namespace', 'n', {}, { labels }));
  const { registry } = await startRegistry({ store: before.store });
  const body = { metadata: { labels: { a: 'b' } } };
  await registry.patch(NAMESPACES, undefined, 'n', 'application/merge-patch+json', body);
  await registry.create(ref('serviceaccounts'), 'n', object('ServiceAccount', 'default'));
  expect((await failure(registry.create(PODS, 'n', pod('a')))).message).toContain(
    'violates PodSecurity "restricted:latest"',
  );
});

test('a stricter enforced level causes warnings about existing Pods, also in a dry run', async () => {
  const { registry, label, warnings } = await startWith({ warn: 'restricted' });
  await registry.create(PODS, 'default', pod('b', PRIVILEGED));
  await registry.create(PODS, 'default', pod('a', PRIVILEGED));
  await registry.create(PODS, 'default', pod('c', { hostNetwork: true }));
  await registry.create(NAMESPACES, undefined, object('Namespace', 'other'));
  const expected = [
    'existing pods in namespace "default" violate the new PodSecurity enforce level "baseline:latest"',
    'a (and 1 other pod): privileged',
    'c: host namespaces',
  ];
  await registry.patch(
    NAMESPACES,
    undefined,
    'default',
    'application/merge-patch+json',
    { metadata: { labels: labelsOf({ enforce: 'baseline' }) } },
    { dryRun: true, onWarning: (text) => warnings.push(text) },
  );
  expect(warnings.splice(0)).toEqual(expected);
  await label({ enforce: 'baseline' });
  expect(warnings.splice(0)).toEqual(expected);
  await label({ enforce: 'baseline', warn: 'baseline' });
  await label({ enforce: 'privileged' });
  expect(warnings).toEqual([]);
});
