/** The registry has a memory store, and no scheduler binds the Pods. Tests that need a node are in test/e2e. */

import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { PODS } from '../../src/api/resources.ts';
import { type KubectlFixture, startKubectlFixture } from './kubectl-fixture.ts';

const NODE_NAME = 'node-1';

let folder: KubectlFixture['folder'];
let registry: KubectlFixture['registry'];
let server: KubectlFixture['server'];
let kubectl: KubectlFixture['kubectl'];
let ok: KubectlFixture['ok'];
let refused: KubectlFixture['refused'];
let get: KubectlFixture['get'];
let apply: KubectlFixture['apply'];
let start: KubectlFixture['start'];
let follow: KubectlFixture['follow'];
let close: KubectlFixture['close'] | undefined;

beforeAll(async () => {
  ({ folder, registry, server, kubectl, ok, refused, get, apply, start, follow, close } = await startKubectlFixture());
});

afterAll(() => close?.());

const pod = (name: string, image = 'busybox:1.28') => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, labels: { app: 'myapp' } },
  spec: {
    initContainers: [
      { name: 'init-myservice', image, command: ['sh', '-c', 'true'] },
      { name: 'init-mydb', image, command: ['sh', '-c', 'true'] },
    ],
    containers: [{ name: 'myapp-container', image, command: ['sh', '-c', 'sleep 3600'] }],
  },
});

describe('discovery and OpenAPI', () => {
  test('kubectl version, cluster-info, api-versions and api-resources show what the server offers', async () => {
    expect(await ok('version')).toContain('Server Version: v1.33.0');
    expect(await ok('cluster-info')).toContain(`is running at`);
    expect((await ok('api-versions')).trim().split('\n')).toEqual([
      'apps/v1',
      'authentication.k8s.io/v1',
      'authorization.k8s.io/v1',
      'autoscaling/v1',
      'autoscaling/v2',
      'batch/v1',
      'certificates.k8s.io/v1',
      'coordination.k8s.io/v1',
      'discovery.k8s.io/v1',
      'events.k8s.io/v1',
      'lifepod.io/v1',
      'metrics.k8s.io/v1beta1',
      'networking.k8s.io/v1',
      'node.k8s.io/v1',
      'policy/v1',
      'rbac.authorization.k8s.io/v1',
      'scheduling.k8s.io/v1',
      'storage.k8s.io/v1',
      'v1',
    ]);
    const resources = await ok('api-resources');
    expect(resources).toMatch(/^pods +po +v1 +true +Pod$/m);
    expect(resources).toMatch(/^daemonsets +ds +apps\/v1 +true +DaemonSet$/m);
    expect(resources).toMatch(/^statefulsets +sts +apps\/v1 +true +StatefulSet$/m);
    expect(resources).toMatch(/^horizontalpodautoscalers +hpa +autoscaling\/v2 +true +HorizontalPodAutoscaler$/m);
    expect(resources).toMatch(/^ingresses +ing +networking\.k8s\.io\/v1 +true +Ingress$/m);
    expect(resources).toMatch(/^networkpolicies +netpol +networking\.k8s\.io\/v1 +true +NetworkPolicy$/m);
    expect(resources).toMatch(/^namespaces +ns +v1 +false +Namespace$/m);
    expect(resources).toMatch(/^leases +coordination\.k8s\.io\/v1 +true +Lease$/m);
    const ofTheCluster = await ok('api-resources', '--verbs=list', '--namespaced=false', '-o', 'name');
    expect(ofTheCluster.trim().split('\n')).toEqual([
      'componentstatuses',
      'namespaces',
      'nodes',
      'persistentvolumes',
      'certificatesigningrequests.certificates.k8s.io',
      'nodes.metrics.k8s.io',
      'ingressclasses.networking.k8s.io',
      'ipaddresses.networking.k8s.io',
      'servicecidrs.networking.k8s.io',
      'runtimeclasses.node.k8s.io',
      'clusterrolebindings.rbac.authorization.k8s.io',
      'clusterroles.rbac.authorization.k8s.io',
      'priorityclasses.scheduling.k8s.io',
      'storageclasses.storage.k8s.io',
    ]);
  });

  test('kubectl explain describes built-in kinds', async () => {
    const text = await ok('explain', 'pod.spec.initContainers');
    expect(text).toContain('FIELD: initContainers <[]Container>');
    expect(text).toMatch(/^ {2}restartPolicy\t<string>$/m);
    expect(await ok('explain', 'pod.spec.containers.resources.limits')).toContain('<map[string]Quantity>');
    expect(await ok('explain', 'leases.spec')).toContain('holderIdentity');
    for (const path of ['pod', 'pod.spec', 'pod.spec.affinity', 'node.status', 'persistentvolume.spec']) {
      expect(await ok('explain', path)).not.toContain('<no description>');
    }
    expect(await ok('explain', 'services.spec.ports.targetPort')).toContain('<IntOrString>');
    expect(await ok('explain', 'events', '--api-version=events.k8s.io/v1')).toContain('reportingController');
    expect(await ok('explain', 'pod', '--recursive')).toContain('topologySpreadConstraints');
  });

  test('raw paths serve health checks and OpenAPI v2', async () => {
    expect(await ok('get', '--raw', '/readyz?verbose')).toMatch(/readyz check passed\n$/);
    expect(JSON.parse(await ok('get', '--raw', '/openapi/v2')).swagger).toBe('2.0');
  });
});

describe('objects of all kinds', () => {
  test('kubectl create works for kinds that it sends as protobuf', async () => {
    expect(await ok('create', 'namespace', 'demo')).toBe('namespace/demo created\n');
    expect(await ok('create', 'configmap', 'settings', '-n', 'demo', '--from-literal=a=b')).toContain('created');
    await ok('create', 'secret', 'generic', 'password', '-n', 'demo', '--from-literal=word=geheim');
    await ok('create', 'service', 'clusterip', 'web', '-n', 'demo', '--tcp=80:8080');
    expect((await get('cm/settings', '-n', 'demo')).data).toEqual({ a: 'b' });
    expect((await get('secret/password', '-n', 'demo')).data).toEqual({ word: 'Z2VoZWlt' });
    const { spec } = await get('service/web', '-n', 'demo');
    expect(spec.ports).toEqual([{ name: '80-8080', port: 80, protocol: 'TCP', targetPort: 8080 }]);
    expect(spec.clusterIP).toMatch(/^10\.99\.0\.\d+$/);
    const token = (await ok('create', 'token', 'default', '--duration=20m')).trim();
    const claims = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
    expect(claims.sub).toBe('system:serviceaccount:default:default');
    expect(claims.exp - claims.iat).toBe(1200);
  });

  test('kubectl auth whoami shows the user and the credential', async () => {
    const text = await ok('auth', 'whoami');
    expect(text).toMatch(/^Username +kubernetes-admin$/m);
    expect(text).toMatch(/^Groups +\[system:masters system:authenticated\]$/m);
    expect(text).toMatch(/^Extra: authentication.kubernetes.io\/credential-id +\[X509SHA256=[0-9a-f]{64}\]$/m);
  });

  test('kubectl get shows tables, documents, selections and errors', async () => {
    expect(await ok('get', 'ns')).toMatch(/^NAME +STATUS +AGE$/m);
    expect(await ok('get', 'svc', 'kubernetes')).toMatch(
      /^kubernetes +ClusterIP +10\.99\.0\.1 +<none> +443\/TCP +\d+s$/m,
    );
    expect(await ok('get', 'svc', '-A', '--no-headers')).toMatch(/^default +kubernetes /m);
    expect(await ok('get', 'svc', '-o', 'wide')).toMatch(/ SELECTOR$/m);
    expect(await ok('get', 'svc', 'kubernetes', '-o', 'yaml')).toContain('clusterIP: 10.99.0.1');
    expect(await ok('get', 'svc', '--sort-by=.metadata.name', '-o', 'name')).toContain('service/kubernetes\n');
    expect(await ok('get', 'svc', '-l', 'provider=kubernetes', '-o', 'jsonpath={.items[*].spec.clusterIP}')).toBe(
      '10.99.0.1',
    );
    expect(await ok('get', 'svc', '--field-selector', 'metadata.name=none', '-o', 'name')).toBe('');
    expect(await ok('get', 'ns', '--chunk-size=2', '-o', 'name')).toContain('namespace/kube-public');
    expect(await ok('get', 'events')).toBe('');
    expect(await refused(['get', 'pod', 'none'])).toBe('Error from server (NotFound): pods "none" not found\n');
    expect(await refused(['get', 'nothings'])).toContain(`the server doesn't have a resource type "nothings"`);
  });

  test('creating an object that exists is refused', async () => {
    expect(await refused(['create', 'namespace', 'default'])).toBe(
      'Error from server (AlreadyExists): namespaces "default" already exists\n',
    );
  });

  test('kubectl applies, shows and changes a PodTemplate', async () => {
    const last = { name: 'last', image: 'busybox:1.28' };
    const template = (labels: object, image: string) => ({
      apiVersion: 'v1',
      kind: 'PodTemplate',
      metadata: { name: 'web' },
      template: { metadata: { labels }, spec: { containers: [{ name: 'app', image }], deferContainers: [last] } },
    });
    expect(await apply(template({ app: 'web' }, 'web:1'), '--server-side=false')).toBe('podtemplate/web created\n');
    expect(await ok('get', 'podtemplates')).toMatch(
      /^NAME +CONTAINERS +IMAGES +POD LABELS\nweb +app +web:1 +app=web\n$/,
    );
    expect(await apply(template({ app: 'web' }, 'web:2'), '--server-side=false')).toBe('podtemplate/web configured\n');
    const { metadata, template: changed } = await get('podtemplate/web');
    expect([metadata.generation, changed.spec.containers[0].image]).toEqual([2, 'web:2']);
    expect(changed.spec.deferContainers).toMatchObject([{ name: 'last', trigger: 'PreExit' }]);
    expect(await ok('explain', 'podtemplate.template.spec.deferContainers')).toContain('<[]DeferContainer>');
    expect(await ok('delete', 'podtemplate', 'web')).toContain('deleted');
  });

  test.each([
    ['--server-side=false', 'created', 'unchanged', 'configured'],
    ['--server-side', 'serverside-applied', 'serverside-applied', 'serverside-applied'],
  ])('kubectl apply %s creates, keeps and changes DaemonSets and StatefulSets', async (option, ...outcomes) => {
    const [selector, labels] = [{ matchLabels: { app: 'web' } }, { app: 'web' }];
    const workloads = (image: string) =>
      ['DaemonSet', 'StatefulSet'].map((kind) => ({
        apiVersion: 'apps/v1',
        kind,
        metadata: { name: 'web' },
        spec: {
          selector,
          template: {
            metadata: { labels },
            spec: { containers: [{ name: 'a', image }], nodeSelector: { no: 'node' } },
          },
          ...(kind === 'DaemonSet' ? {} : { replicas: 0, serviceName: 'web' }),
        },
      }));
    for (const [index, image] of ['web:1', 'web:1', 'web:2'].entries()) {
      const printed = await apply({ apiVersion: 'v1', kind: 'List', items: workloads(image) }, option);
      expect(printed).toBe(`daemonset.apps/web ${outcomes[index]}\nstatefulset.apps/web ${outcomes[index]}\n`);
    }
    expect(await ok('scale', 'sts/web', '--replicas=3', '--current-replicas=0')).toBe('statefulset.apps/web scaled\n');
    const [daemonSet, set] = [await get('ds/web'), await get('sts/web')];
    expect([daemonSet.metadata.generation, set.metadata.generation, set.spec.replicas]).toEqual([2, 3, 3]);
    expect(daemonSet.metadata.annotations['deprecated.daemonset.template.generation']).toBe('2');
    expect(await ok('delete', 'ds/web', 'sts/web')).toContain('deleted');
  });

  test('kubectl get and delete handle many objects in pages', async () => {
    const items = Array.from({ length: 30 }, (_, index) => ({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: `many-${index}`, namespace: 'kube-public' },
      data: { text: 'x'.repeat(20_000) },
    }));
    await apply({ apiVersion: 'v1', kind: 'List', items }, '--server-side=false');
    const names = (await ok('get', 'cm', '-n', 'kube-public', '--chunk-size=7', '-o', 'name')).trim().split('\n');
    expect(names).toHaveLength(30);
    expect(await ok('delete', 'cm', '--all', '-n', 'kube-public')).toMatch(/"many-29" deleted$/m);
    expect(await ok('get', 'cm', '-n', 'kube-public', '-o', 'name')).toBe('');
  });
});

describe('Pods', () => {
  test('kubectl apply merges a change of one container of the list', async () => {
    expect(await apply(pod('applied'))).toBe('pod/applied created\n');
    expect(await apply(pod('applied'))).toBe('pod/applied unchanged\n');
    const changed = pod('applied', 'busybox:1.29');
    expect(await apply(changed)).toBe('pod/applied configured\n');
    const { spec } = await get('pod/applied');
    expect(spec.initContainers.map((container: { image: string }) => container.image)).toEqual([
      'busybox:1.29',
      'busybox:1.29',
    ]);
    // The lists are merged by name, so defaults that the manifest does not contain are kept.
    expect(spec.containers[0]).toMatchObject({ image: 'busybox:1.29', imagePullPolicy: 'IfNotPresent' });
    expect(await apply(changed, '--dry-run=server')).toBe('pod/applied unchanged (server dry run)\n');
    expect(
      (await kubectl(['diff', '-f', '-'], { input: JSON.stringify(pod('applied', 'busybox:1.30')) })).out,
    ).toContain('+    image: busybox:1.30');
  });

  test('kubectl get and describe show a Pod', async () => {
    expect(await ok('get', 'pod', 'applied')).toMatch(/^applied +0\/1 +Pending +0 +\d+s$/m);
    expect(await ok('get', 'pod', 'applied', '-o', 'wide')).toMatch(/ NOMINATED NODE +READINESS GATES$/m);
    const text = await ok('describe', 'pod', 'applied');
    expect(text).toMatch(/^Init Containers:\n {2}init-myservice:/m);
    expect(text).toMatch(/^Status: +Pending$/m);
    expect(text).toMatch(/^Events: +<none>$/m);
  });

  test('kubectl label, annotate and the three types of patch change a Pod', async () => {
    expect(await ok('label', 'pod', 'applied', 'tier=web')).toBe('pod/applied labeled\n');
    expect(await ok('annotate', 'pod', 'applied', 'note=one')).toBe('pod/applied annotated\n');
    const patch = async (type: string, body: unknown) =>
      ok('patch', 'pod', 'applied', `--type=${type}`, '-p', JSON.stringify(body));
    await patch('strategic', {
      metadata: { labels: { strategic: 'yes' } },
      spec: { initContainers: [{ name: 'init-mydb', image: 'busybox:1.31' }] },
    });
    await patch('merge', { metadata: { labels: { merge: 'yes' } } });
    await patch('json', [{ op: 'add', path: '/metadata/labels/json', value: 'yes' }]);
    const { metadata, spec } = await get('pod/applied');
    expect(metadata.labels).toEqual({ app: 'myapp', tier: 'web', strategic: 'yes', merge: 'yes', json: 'yes' });
    expect(metadata.annotations['note']).toBe('one');
    expect(spec.initContainers.map((container: { image: string }) => container.image)).toEqual([
      'busybox:1.29',
      'busybox:1.31',
    ]);
    await ok('label', 'pod', 'applied', 'tier-');
    expect((await get('pod/applied')).metadata.labels.tier).toBeUndefined();
  });

  test('kubectl edit changes a Pod; a forbidden edit is refused', async () => {
    const edit = (expression: string) =>
      kubectl(['edit', 'pod', 'applied'], { env: { KUBE_EDITOR: `sed -i '${expression}'` } });
    expect((await edit('s/busybox:1.31/busybox:1.32/')).out).toBe('pod/applied edited\n');
    expect((await get('pod/applied')).spec.initContainers[1].image).toBe('busybox:1.32');
    const { code, out, err } = await edit('s/restartPolicy: Always/restartPolicy: Never/');
    expect(code).not.toBe(0);
    expect(`${out}${err}`).toContain('pods "applied" is invalid');
  });

  test('kubectl get -w shows changes as they happen', async () => {
    const lines = follow('get', 'pods', '-w', '--field-selector', 'metadata.name=watched');
    const events = follow('get', 'pods', '-w', '--no-headers', '--output-watch-events', '-l', 'app=watched');
    await apply({ ...pod('watched'), metadata: { name: 'watched', labels: { app: 'watched' } } });
    expect((await lines.next()).value).toMatch(/^NAME +READY +STATUS +RESTARTS +AGE$/);
    expect((await lines.next()).value).toMatch(/^watched +0\/1 +Pending +0 +\d+s$/);
    expect((await events.next()).value).toMatch(/^ADDED +watched /);
    await registry.patch(
      PODS,
      'default',
      'watched',
      'application/merge-patch+json',
      { status: { phase: 'Running' } },
      { subresource: 'status' },
    );
    expect((await lines.next()).value).toMatch(/^watched +0\/1 +Running +0 +\d+s$/);
    expect((await events.next()).value).toMatch(/^MODIFIED +watched /);
    await ok('delete', 'pod', 'watched');
    expect((await events.next()).value).toMatch(/^DELETED +watched /);
  });

  test('kubectl wait returns when the condition is met, and fails at its timeout', async () => {
    const waiting = ok('wait', '--for=jsonpath={.status.phase}=Succeeded', 'pod/applied', '--timeout=60s');
    await registry.patch(
      PODS,
      'default',
      'applied',
      'application/merge-patch+json',
      { status: { phase: 'Succeeded' } },
      { subresource: 'status' },
    );
    expect(await waiting).toBe('pod/applied condition met\n');
    expect(await refused(['wait', '--for=condition=Ready', 'pod/applied', '--timeout=1s'])).toContain(
      'timed out waiting',
    );
  });

  test("kubectl logs reads from the node of a bound Pod, with upstream's errors", async () => {
    await apply({ ...pod('logged'), spec: { ...pod('logged').spec, nodeName: NODE_NAME } });
    expect(await ok('logs', 'logged', '-c', 'init-mydb')).toBe('log of init-mydb\n');
    expect(await ok('logs', 'logged')).toContain('log of myapp-container\n');
    expect(await refused(['logs', 'logged', '-c', 'other'])).toContain('container other is not valid for pod logged');
    expect(await ok('delete', 'pod', 'logged', '--force', '--grace-period=0')).toContain('force deleted');
  });

  test('kubectl run creates a Pod, kubectl events shows its Event, and kubectl delete deletes it', async () => {
    expect(await ok('run', 'single', '--image=busybox:1.28', '--restart=Never')).toBe('pod/single created\n');
    await apply({
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: 'single.1', namespace: 'default' },
      involvedObject: { apiVersion: 'v1', kind: 'Pod', namespace: 'default', name: 'single' },
      reason: 'Scheduled',
      message: 'Successfully assigned default/single to node-1',
      type: 'Normal',
      source: { component: 'default-scheduler' },
      lastTimestamp: new Date().toISOString(),
    });
    expect(await ok('get', 'events')).toMatch(/ Normal +Scheduled +pod\/single +Successfully assigned/);
    expect(await ok('events', '--for', 'pod/single')).toContain('Scheduled');
    expect(await ok('delete', 'pod', 'single')).toMatch(/^pod "single" deleted/);
    expect(await ok('delete', 'pod', 'single', '--ignore-not-found')).toBe('');
    expect(await refused(['delete', 'pod', 'single'])).toBe('Error from server (NotFound): pods "single" not found\n');
  });
});

describe('bad input', () => {
  const unknownField = { ...pod('strict'), spec: { ...pod('strict').spec, containerz: [] } };

  test('an unknown field is refused, or gives a warning with --validate=warn', async () => {
    expect(await refused(['apply', '--validate=strict', '-f', '-'], JSON.stringify(unknownField))).toContain(
      'strict decoding error: unknown field "spec.containerz"',
    );
    const warned = await kubectl(['apply', '--validate=warn', '-f', '-'], { input: JSON.stringify(unknownField) });
    expect(warned).toMatchObject({ code: 0, out: 'pod/strict created\n' });
    expect(warned.err).toContain('Warning: unknown field "spec.containerz"');
    await ok('delete', 'pod', 'strict');
  });

  test('a field added after v1.33 is unknown; a field whose feature gate is off in v1.33 is dropped silently', async () => {
    const of = (more: object): string => JSON.stringify({ ...pod('newer'), spec: { ...pod('newer').spec, ...more } });
    expect(await refused(['apply', '--validate=strict', '-f', '-'], of({ hostnameOverride: 'other' }))).toContain(
      'strict decoding error: unknown field "spec.hostnameOverride"',
    );
    const manifest = of({ resources: { limits: { cpu: '1' } } });
    for (const outcome of ['created', 'configured']) {
      const { out, err } = await kubectl(['apply', '--validate=strict', '-f', '-'], { input: manifest });
      expect([out, err]).toEqual([`pod/newer ${outcome}\n`, '']);
    }
    const { spec, status } = await get('pod/newer');
    expect([spec.resources, status.qosClass]).toEqual([undefined, 'BestEffort']);
    await ok('delete', 'pod', 'newer');
  });

  test('an invalid object is refused with every error', async () => {
    const invalid = pod('invalid');
    const [first] = invalid.spec.initContainers;
    if (first !== undefined) first.name = '';
    const text = await refused(['create', '-f', '-'], JSON.stringify(invalid));
    expect(text).toContain('The Pod "invalid" is invalid: spec.initContainers[0].name: Required value');
  });

  test('kinds that are not served and broken YAML do not affect other objects of the file', async () => {
    const path = join(folder, 'mixed.yaml');
    const configMap = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: good}\n';
    writeFileSync(path, `${configMap}---\napiVersion: none.example/v1\nkind: Thing\nmetadata: {name: bad}\n`);
    expect(await refused(['apply', '-f', path])).toContain('no matches for kind "Thing" in version "none.example/v1"');
    expect(await ok('get', 'cm', 'good', '-o', 'name')).toBe('configmap/good\n');
    writeFileSync(path, 'kind: [');
    expect(await refused(['apply', '-f', path])).toContain('error');
  });

  test('a body of more than 3 MiB is refused', async () => {
    const data = Object.fromEntries(Array.from({ length: 5 }, (_, index) => [`k${index}`, 'x'.repeat(900_000)]));
    const large = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'large' }, data };
    expect(await refused(['create', '-f', '-'], JSON.stringify(large))).toContain(
      'Request entity too large: limit is 3145728',
    );
  });
});

test('closing the server ends kubectl get -w', async () => {
  const child = start('get', 'cm', '-w', '-o', 'name');
  if (child.stdout === null) throw new Error('kubectl has no output');
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const exit = once(child, 'exit');
  expect((await lines.next()).value).toContain('configmap/');
  await server.close();
  await exit;
});
