import { describe, expect } from 'vitest';
import type { Node, Service } from '../../src/api/generated/types.ts';
import { pod, WAIT } from '../support/manifests.ts';
import { inPhase, isReady, statusOf, waitsFor } from '../support/pods.ts';
import { lifepod, record, testInFileNamespace as test } from '../support/shared-engine.ts';

test.beforeAll(async () => {
  await lifepod.kubectlOk('create', 'configmap', 'settings', '--from-literal=level=3', '--from-literal=not.a-word=x');
  await lifepod.kubectlOk(
    'create',
    'secret',
    'generic',
    'keys',
    '--from-literal=user=me',
    '--from-literal=word=$(level)',
  );
});

const field = (name: string, fieldPath: string): object => ({ name, valueFrom: { fieldRef: { fieldPath } } });
const resource = (name: string, of: string, more: object = {}): object => ({
  name,
  valueFrom: { resourceFieldRef: { resource: of, ...more } },
});
/** Prints the environment without a shell, because a shell drops variables whose names it does not accept. */
const PRINT = { script: '', command: ['cat', '/proc/self/environ'] };
/** `app` contains additional fields of the container, `more` those of the Pod's metadata and spec. */
async function environmentOf(name: string, app: object, more: object = {}): Promise<Record<string, string>> {
  const manifest = pod(name, {
    app: [{ name: 'app', ...PRINT, ...app }],
    spec: { restartPolicy: 'Never', ...(more as { spec?: object }).spec },
  });
  const metadata = { name, ...(more as { metadata?: object }).metadata };
  await lifepod.apply({ ...manifest, metadata });
  await record.until(name, inPhase('Succeeded'));
  const text = await lifepod.kubectlOk('logs', name, '-c', 'app');
  return Object.fromEntries(
    text.split('\0').flatMap((entry) => {
      const at = entry.indexOf('=');
      return at < 1 ? [] : [[entry.slice(0, at), entry.slice(at + 1)]];
    }),
  );
}

describe('the downward API', () => {
  test('the downward API provides all supported fields of the Pod as variables', async () => {
    const names = [
      'metadata.name',
      'metadata.namespace',
      'metadata.uid',
      "metadata.annotations['note']",
      "metadata.labels['app']",
      "metadata.labels['none']",
      'spec.serviceAccountName',
      'spec.nodeName',
      'status.hostIP',
      'status.hostIPs',
      'status.podIP',
      'status.podIPs',
    ];
    const found = await environmentOf(
      'fields',
      { env: names.map((path, index) => field(`F${index}`, path)) },
      { metadata: { labels: { app: 'mine' }, annotations: { note: 'a "b"\nc' } } },
    );
    const { metadata, status } = record.now('fields');
    expect(names.map((_path, index) => found[`F${index}`])).toEqual([
      'fields',
      lifepod.namespace,
      metadata.uid,
      'a "b"\nc',
      'mine',
      '',
      'default',
      'node-1',
      status?.hostIP,
      status?.hostIP,
      status?.podIP,
      status?.podIP,
    ]);
    expect(status?.podIP).toMatch(/^\d+\.\d+\.\d+\.\d+$/);
  });

  test("the downward API provides the node's address as the Pod's IP with hostNetwork, and supports spec.host", async () => {
    const found = await environmentOf(
      'hosted',
      { env: [field('IP', 'status.podIP'), field('IPS', 'status.podIPs'), field('NODE', 'spec.host')] },
      { spec: { hostNetwork: true } },
    );
    const { hostIP } = record.now('hosted').status ?? {};
    expect(hostIP).toMatch(/^\d+\.\d+\.\d+\.\d+$/);
    expect(found).toMatchObject({ IP: hostIP, IPS: hostIP, NODE: 'node-1' });
  });

  test('the downward API provides requests and limits of any container, divided by the divisor and rounded up', async () => {
    const limits = { cpu: '1500m', memory: '65Mi', 'ephemeral-storage': '1500M' };
    const requests = { cpu: '250m', memory: '1000k', 'ephemeral-storage': '1Gi' };
    const found = await environmentOf(
      'amounts',
      {
        resources: { limits, requests },
        env: [
          resource('LIMIT_CPU', 'limits.cpu'),
          resource('LIMIT_MILLI', 'limits.cpu', { divisor: '1m' }),
          resource('REQUEST_CPU', 'requests.cpu'),
          resource('REQUEST_MILLI', 'requests.cpu', { divisor: '1m' }),
          resource('LIMIT_MEMORY', 'limits.memory'),
          resource('LIMIT_GI', 'limits.memory', { divisor: '1Gi' }),
          resource('REQUEST_MEMORY', 'requests.memory', { divisor: '1Mi' }),
          resource('LIMIT_DISK', 'limits.ephemeral-storage', { divisor: '1M' }),
          resource('REQUEST_DISK', 'requests.ephemeral-storage'),
          resource('OF_OTHER', 'limits.cpu', { containerName: 'other', divisor: '1m' }),
        ],
      },
      {
        spec: {
          initContainers: [
            { name: 'other', image: 'busybox:1.28', command: ['true'], resources: { limits: { cpu: '300m' } } },
          ],
        },
      },
    );
    expect(found).toMatchObject({
      LIMIT_CPU: '2',
      LIMIT_MILLI: '1500',
      REQUEST_CPU: '1',
      REQUEST_MILLI: '250',
      LIMIT_MEMORY: String(65 * 1024 * 1024),
      LIMIT_GI: '1',
      REQUEST_MEMORY: '1',
      LIMIT_DISK: '1500',
      REQUEST_DISK: String(1024 ** 3),
      OF_OTHER: '300',
    });
  });

  test("the downward API provides the node's allocatable amount as the limit of a container without a limit", async () => {
    const { status } = await lifepod.get<Node>('node', 'node-1');
    const found = await environmentOf('open', {
      resources: { limits: { memory: '0' } },
      env: [
        resource('CPU', 'limits.cpu'),
        resource('MEMORY', 'limits.memory', { divisor: '1Ki' }),
        resource('DISK', 'limits.ephemeral-storage'),
        resource('HUGE', 'limits.hugepages-2Mi'),
        resource('HUGE_REQUEST', 'requests.hugepages-2Mi'),
        resource('NONE', 'requests.cpu'),
      ],
    });
    const allocatable = status?.allocatable ?? {};
    expect(found).toMatchObject({
      CPU: allocatable['cpu'],
      MEMORY: allocatable['memory']?.replace(/Ki$/, ''),
      DISK: allocatable['ephemeral-storage'],
      // A container without a limit for huge pages can use none, so the value is not the node's allocatable amount.
      HUGE: '0',
      HUGE_REQUEST: '0',
      NONE: '0',
    });
  });

  test('the downward API provides all labels as a file in a volume, and rejects them as a variable', async () => {
    const manifest = pod('in-volume', {
      app: [{ name: 'app', script: 'cat /info/*', volumeMounts: [{ name: 'info', mountPath: '/info' }] }],
      labels: { b: '2', a: '1' },
      spec: {
        restartPolicy: 'Never',
        volumes: [
          { name: 'info', downwardAPI: { items: [{ path: 'l', fieldRef: { fieldPath: 'metadata.labels' } }] } },
        ],
      },
    });
    await lifepod.apply(manifest);
    await record.until('in-volume', inPhase('Succeeded'));
    expect(await lifepod.kubectlOk('logs', 'in-volume')).toBe('a="1"\nb="2"');
    const refused = await lifepod.kubectlInput(
      JSON.stringify(pod('wrong', { app: [{ name: 'app', script: '', env: [field('L', 'metadata.labels')] }] })),
      'apply',
      '-f',
      '-',
    );
    expect(refused.stderr).toContain('spec.containers[0].env[0].valueFrom.fieldRef.fieldPath');
  });
});

describe('ConfigMaps and Secrets', () => {
  const key = (kind: string, name: string, of: string, optional?: boolean): object => ({
    valueFrom: { [`${kind}KeyRef`]: { name, key: of, ...(optional === undefined ? {} : { optional }) } },
  });

  test('variables come from single keys or from all keys of a ConfigMap or Secret, and the later source wins', async () => {
    const found = await environmentOf('sets', {
      envFrom: [
        { configMapRef: { name: 'settings' } },
        { prefix: 'S_', secretRef: { name: 'keys' } },
        { configMapRef: { name: 'absent', optional: true } },
      ],
      env: [
        { name: 'LEVEL', ...key('configMap', 'settings', 'level') },
        { name: 'USER', ...key('secret', 'keys', 'user') },
        { name: 'NO_KEY', ...key('secret', 'keys', 'none', true) },
        { name: 'NO_MAP', ...key('configMap', 'absent', 'none', true) },
        { name: 'S_user', value: 'you' },
      ],
    });
    expect(found).toMatchObject({
      level: '3',
      'not.a-word': 'x',
      LEVEL: '3',
      USER: 'me',
      S_word: '$(level)',
      S_user: 'you',
    });
    expect(Object.keys(found)).not.toContain('NO_KEY');
    expect(Object.keys(found)).not.toContain('NO_MAP');
  });

  test.each([
    [
      'ConfigMap in envFrom',
      'no-map',
      { envFrom: [{ configMapRef: { name: 'later' } }] },
      'configmap "later" not found',
    ],
    ['Secret in envFrom', 'no-secret-set', { envFrom: [{ secretRef: { name: 'later' } }] }, 'secret "later" not found'],
    [
      'ConfigMap key named constructor',
      'no-such-key',
      { env: [{ name: 'A', ...key('configMap', 'settings', 'constructor') }] },
      "couldn't find key constructor in ConfigMap NAMESPACE/settings",
    ],
    [
      'Secret in env',
      'no-secret',
      { env: [{ name: 'A', ...key('secret', 'later', 'k') }] },
      'secret "later" not found',
    ],
    [
      'ConfigMap key',
      'no-key',
      { env: [{ name: 'A', ...key('configMap', 'settings', 'none') }] },
      "couldn't find key none in ConfigMap NAMESPACE/settings",
    ],
    [
      'Secret key',
      'no-secret-key',
      { env: [{ name: 'A', ...key('secret', 'keys', 'none') }] },
      "couldn't find key none in Secret NAMESPACE/keys",
    ],
  ])(
    'a container waits for a missing %s, and its status reports what is missing',
    async (_missing, name, app, text) => {
      const message = text.replace('NAMESPACE', lifepod.namespace);
      await lifepod.apply(pod(name, { app: [{ name: 'app', script: WAIT, ...app }] }));
      const waiting = await record.until(name, waitsFor('app', 'CreateContainerConfigError'));
      expect(statusOf(waiting, 'app').state?.waiting?.message).toBe(message);
      expect(await record.event(name, /not found|couldn't find/)).toBe(`Warning Failed: Error: ${message}`);
    },
  );

  test('a container that waits for a missing ConfigMap starts when the ConfigMap is created', async () => {
    await lifepod.kubectlOk('create', 'configmap', 'later', '--from-literal=a=b');
    await record.until('no-map', isReady);
    expect(await lifepod.execOk('no-map', '--', 'sh', '-c', 'echo $a')).toBe('b\n');
  });
});

test('a container whose variables expand to more than 6 MiB waits with an error', async () => {
  const env = Array.from({ length: 100 }, (_, index) => ({
    name: `V${index}`,
    value: index === 0 ? 'x' : `$(V${index - 1})`.repeat(2),
  }));
  await lifepod.apply(pod('doubling', { app: [{ name: 'app', script: WAIT, env }] }));
  const waiting = await record.until('doubling', waitsFor('app', 'CreateContainerConfigError'));
  expect(statusOf(waiting, 'app').state?.waiting?.message).toContain('are larger than 6 MiB, the limit of Linux');
});

test('$(NAME) is expanded in commands, arguments and the values of later variables', async () => {
  await lifepod.apply({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'expanded' },
    spec: {
      restartPolicy: 'Never',
      containers: [
        {
          name: 'app',
          image: 'busybox:1.28',
          command: ['echo', '-n', '$(FIRST)|$(SECOND)'],
          args: ['|$$(FIRST)|$(UNKNOWN)|$(EARLY)|$(KUBERNETES_SERVICE_PORT)|$(open'],
          env: [
            { name: 'EARLY', value: '$(FIRST)' },
            { name: 'FIRST', value: '1' },
            { name: 'SECOND', value: '$(FIRST)2 $$(FIRST)' },
          ],
        },
      ],
    },
  });
  await record.until('expanded', inPhase('Succeeded'));
  expect(await lifepod.kubectlOk('logs', 'expanded')).toBe('1|12 $(FIRST) |$(FIRST)|$(UNKNOWN)|$(FIRST)|443|$(open');
});

describe('Services', () => {
  const service = (name: string, spec: object = {}): object => ({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name },
    spec: {
      ...spec,
      ports: [
        { name: 'web', port: 80 },
        { name: 'dns', port: 53, protocol: 'UDP' },
      ],
    },
  });
  test('a container has variables for the Services that exist when it starts, unless enableServiceLinks is false', async () => {
    await lifepod.apply(service('my-db'));
    await lifepod.apply(service('headless', { clusterIP: 'None' }));
    const { spec } = await lifepod.get<Service>('service', 'my-db');
    const ip = spec?.clusterIP;
    const found = await environmentOf('linked', { env: [{ name: 'MY_DB_PORT', value: 'own' }] });
    expect(found).toMatchObject({
      MY_DB_SERVICE_HOST: ip,
      MY_DB_SERVICE_PORT: '80',
      MY_DB_SERVICE_PORT_WEB: '80',
      MY_DB_SERVICE_PORT_DNS: '53',
      MY_DB_PORT: 'own',
      MY_DB_PORT_80_TCP: `tcp://${ip}:80`,
      MY_DB_PORT_53_UDP: `udp://${ip}:53`,
      MY_DB_PORT_53_UDP_PROTO: 'udp',
      MY_DB_PORT_53_UDP_PORT: '53',
      MY_DB_PORT_53_UDP_ADDR: ip,
      KUBERNETES_SERVICE_PORT: '443',
    });
    expect(Object.keys(found).filter((name) => name.startsWith('HEADLESS'))).toEqual([]);
    const without = await environmentOf('unlinked', {}, { spec: { enableServiceLinks: false } });
    expect(Object.keys(without).filter((name) => name.startsWith('MY_DB'))).toEqual([]);
    expect(without['KUBERNETES_SERVICE_HOST']).toBe(found['KUBERNETES_SERVICE_HOST']);
  });
});
