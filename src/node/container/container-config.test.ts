import { describe, expect, it } from 'vitest';
import type { ConfigMap, Container, Pod, Secret, Service } from '../../api/generated/types.ts';
import type { ImageInfo } from '../../runtime/runtime.ts';
import { containerConfig, type PodEnvironment, sandboxConfig } from './container-config.ts';
import { etcHosts } from './container-files.ts';
import { parseResolvConf, podDnsConfig } from './dns-config.ts';

const image: ImageInfo = { id: 'sha256:1', tags: [], digests: [], sizeBytes: 1 };

const service = (namespace: string, name: string, clusterIP: string, ports: object[]): Service =>
  ({ apiVersion: 'v1', kind: 'Service', metadata: { name, namespace }, spec: { clusterIP, ports } }) as Service;

const configMaps: Record<string, ConfigMap> = {
  settings: {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'settings' },
    data: { color: 'blue', 'a.b': 'dotted', 'bad=name': 'x' },
  },
};
const secrets: Record<string, Secret> = {
  login: { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'login' }, data: { user: 'YWRtaW4=' } },
};

const env: PodEnvironment = {
  nodeName: 'n1',
  hostIps: ['192.0.2.1'],
  podIps: ['10.0.0.7'],
  allocatable: { cpu: '2', memory: '1Gi', 'hugepages-2Mi': '8Mi' },
  services: [
    service('default', 'kubernetes', '10.96.0.1', [{ name: 'https', port: 443, protocol: 'TCP' }]),
    service('ns1', 'my-db', '10.96.0.9', [
      { name: 'sql-main', port: 5432, protocol: 'TCP' },
      { name: 'stats', port: 9, protocol: 'UDP' },
    ]),
    service('ns1', 'headless', 'None', [{ port: 1 }]),
    service('other', 'unseen', '10.96.0.10', [{ port: 1 }]),
  ],
  configMap: (name) => configMaps[name],
  secret: (name) => secrets[name],
  dns: {
    clusterDns: ['10.96.0.10'],
    clusterDomain: 'cluster.local',
    host: { servers: ['8.8.8.8'], searches: ['example.com'], options: ['timeout:1'] },
  },
  podDirectory: '/d/pods/u1',
  logsRoot: '/d/logs',
  seccompRoot: '/d/seccomp',
  memoryCapacityBytes: 1024 ** 3 * 4,
  volumePath: (name) => `/d/pods/u1/volumes/${name}`,
};

function podOf(spec: Partial<Pod['spec']> = {}, metadata: object = {}): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p1', namespace: 'ns1', uid: 'u1', ...metadata },
    spec: { containers: [], serviceAccountName: 'sa', ...spec },
  } as Pod;
}
const build = (container: Partial<Container>, spec: Partial<Pod['spec']> = {}, metadata: object = {}) =>
  containerConfig(podOf(spec, metadata), { name: 'c', ...container }, 'app', 3, 40, image, env);
const variables = (container: Partial<Container>, spec: Partial<Pod['spec']> = {}, metadata: object = {}) =>
  Object.fromEntries(build(container, spec, metadata).env.map(({ name, value }) => [name, value]));

describe('environment', () => {
  const tooLarge =
    'the arguments and environment with their references expanded are larger than 6 MiB, the limit of Linux';
  it.each([
    [
      'variables that each double the previous one',
      {
        env: Array.from({ length: 100 }, (_, i) => ({
          name: `V${i}`,
          value: i === 0 ? 'x' : `$(V${i - 1})`.repeat(2),
        })),
      },
    ],
    [
      'variables of 1 MiB',
      { env: Array.from({ length: 7 }, (_, i) => ({ name: `V${i}`, value: 'x'.repeat(2 ** 20) })) },
    ],
    ['arguments', { env: [{ name: 'V', value: 'x'.repeat(2 ** 20) }], args: Array(1000).fill('$(V)') }],
    ['a command', { env: [{ name: 'V', value: 'x'.repeat(2 ** 20) }], command: ['$(V)'.repeat(1000)] }],
  ])('a container with %s beyond 6 MiB is rejected with CreateContainerConfigError', (_what, container) => {
    expect(() => build(container)).toThrow(
      expect.objectContaining({ message: tooLarge, reason: 'CreateContainerConfigError' }) as unknown as Error,
    );
  });

  it('every source of variables is resolved in order, and references are expanded', () => {
    const all = variables(
      {
        resources: { limits: { cpu: '1500m' }, requests: { memory: '64Mi' } },
        envFrom: [{ configMapRef: { name: 'settings' } }, { prefix: 'S_', secretRef: { name: 'login' } }],
        env: [
          { name: 'color', value: 'very $(color)' },
          { name: 'LATER', value: '$(color) $(NOT_YET) $$(color) $(KUBERNETES_SERVICE_HOST)' },
          { name: 'NOT_YET', value: 'x' },
          { name: 'NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
          { name: 'LABEL', valueFrom: { fieldRef: { fieldPath: "metadata.labels['app.kubernetes.io/x']" } } },
          { name: 'NODE', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } },
          { name: 'ACCOUNT', valueFrom: { fieldRef: { fieldPath: 'spec.serviceAccountName' } } },
          { name: 'IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } },
          { name: 'HOSTS', valueFrom: { fieldRef: { fieldPath: 'status.hostIPs' } } },
          { name: 'CPU', valueFrom: { resourceFieldRef: { resource: 'limits.cpu' } } },
          { name: 'CPUM', valueFrom: { resourceFieldRef: { resource: 'limits.cpu', divisor: '1m' } } },
          { name: 'MEM', valueFrom: { resourceFieldRef: { resource: 'requests.memory', divisor: '1Mi' } } },
          { name: 'MEMLIMIT', valueFrom: { resourceFieldRef: { resource: 'limits.memory' } } },
          { name: 'KEY', valueFrom: { configMapKeyRef: { name: 'settings', key: 'a.b' } } },
          { name: 'USER', valueFrom: { secretKeyRef: { name: 'login', key: 'user' } } },
          { name: 'GONE', valueFrom: { secretKeyRef: { name: 'none', key: 'user', optional: true } } },
        ],
      },
      {},
      { labels: { 'app.kubernetes.io/x': 'label' } },
    );
    expect(all).toMatchObject({
      'a.b': 'dotted',
      color: 'very blue',
      S_user: 'admin',
      LATER: 'very blue $(NOT_YET) $(color) 10.96.0.1',
      NAME: 'p1',
      LABEL: 'label',
      NODE: 'n1',
      ACCOUNT: 'sa',
      IP: '10.0.0.7',
      HOSTS: '192.0.2.1',
      CPU: '2',
      CPUM: '1500',
      MEM: '64',
      MEMLIMIT: '1073741824',
      KEY: 'dotted',
      USER: 'admin',
    });
    expect(all).not.toHaveProperty('GONE');
    expect(all).not.toHaveProperty('bad=name');
  });

  it.each([
    ['a property of every JavaScript object', 'constructor'],
    ['a method of every JavaScript object', 'toString'],
  ])('a variable does not find a key that is %s', (_what, key) => {
    const of = (valueFrom: object) => ({ env: [{ name: 'V', valueFrom }] }) as Partial<Container>;
    expect(() => variables(of({ configMapKeyRef: { name: 'settings', key } }))).toThrow(
      `couldn't find key ${key} in ConfigMap ns1/settings`,
    );
    expect(() => variables(of({ secretKeyRef: { name: 'login', key } }))).toThrow(
      `couldn't find key ${key} in Secret ns1/login`,
    );
    expect(variables(of({ configMapKeyRef: { name: 'settings', key, optional: true } }))).not.toHaveProperty('V');
    expect(variables(of({ fieldRef: { fieldPath: `metadata.labels['${key}']` } }), {}, { labels: {} })['V']).toBe('');
    expect(() => variables(of({ fieldRef: { fieldPath: key } }))).toThrow(`unsupported fieldPath: ${key}`);
  });

  it('a resourceFieldRef treats a limit of zero as no limit, except for huge pages, and a fieldRef accepts spec.host', () => {
    const of = (resource: string) => ({ name: resource.toUpperCase(), valueFrom: { resourceFieldRef: { resource } } });
    const found = variables({
      resources: { limits: { cpu: '0', memory: '0' }, requests: { cpu: '0' } },
      env: [
        ...['limits.cpu', 'limits.memory', 'requests.cpu', 'limits.hugepages-2Mi'].map(of),
        { name: 'HOST', valueFrom: { fieldRef: { fieldPath: 'spec.host' } } },
      ],
    });
    expect(found).toMatchObject({
      'LIMITS.CPU': '2',
      'LIMITS.MEMORY': String(2 ** 30),
      'REQUESTS.CPU': '0',
      'LIMITS.HUGEPAGES-2MI': '0',
      HOST: 'n1',
    });
  });

  it('a container has the variables of the Services of its namespace and of kubernetes', () => {
    expect(variables({ env: [{ name: 'MY_DB_PORT', value: 'own' }] })).toEqual({
      MY_DB_PORT: 'own',
      KUBERNETES_SERVICE_HOST: '10.96.0.1',
      KUBERNETES_SERVICE_PORT: '443',
      KUBERNETES_SERVICE_PORT_HTTPS: '443',
      KUBERNETES_PORT: 'tcp://10.96.0.1:443',
      KUBERNETES_PORT_443_TCP: 'tcp://10.96.0.1:443',
      KUBERNETES_PORT_443_TCP_PROTO: 'tcp',
      KUBERNETES_PORT_443_TCP_PORT: '443',
      KUBERNETES_PORT_443_TCP_ADDR: '10.96.0.1',
      MY_DB_SERVICE_HOST: '10.96.0.9',
      MY_DB_SERVICE_PORT: '5432',
      MY_DB_SERVICE_PORT_SQL_MAIN: '5432',
      MY_DB_SERVICE_PORT_STATS: '9',
      MY_DB_PORT_5432_TCP: 'tcp://10.96.0.9:5432',
      MY_DB_PORT_5432_TCP_PROTO: 'tcp',
      MY_DB_PORT_5432_TCP_PORT: '5432',
      MY_DB_PORT_5432_TCP_ADDR: '10.96.0.9',
      MY_DB_PORT_9_UDP: 'udp://10.96.0.9:9',
      MY_DB_PORT_9_UDP_PROTO: 'udp',
      MY_DB_PORT_9_UDP_PORT: '9',
      MY_DB_PORT_9_UDP_ADDR: '10.96.0.9',
    });
    const few = Object.keys(variables({}, { enableServiceLinks: false }));
    expect(few.every((name) => name.startsWith('KUBERNETES_'))).toBe(true);
    expect(few).toContain('KUBERNETES_SERVICE_HOST');
  });

  const failures: [string, Partial<Container>, string][] = [
    ['ConfigMap of envFrom', { envFrom: [{ configMapRef: { name: 'no' } }] }, 'configmap "no" not found'],
    ['Secret of envFrom', { envFrom: [{ secretRef: { name: 'no' } }] }, 'secret "no" not found'],
    [
      'ConfigMap',
      { env: [{ name: 'A', valueFrom: { configMapKeyRef: { name: 'no', key: 'k' } } }] },
      'configmap "no" not found',
    ],
    [
      'key of a ConfigMap',
      { env: [{ name: 'A', valueFrom: { configMapKeyRef: { name: 'settings', key: 'k' } } }] },
      "couldn't find key k in ConfigMap ns1/settings",
    ],
    [
      'key of a Secret',
      { env: [{ name: 'A', valueFrom: { secretKeyRef: { name: 'login', key: 'k' } } }] },
      "couldn't find key k in Secret ns1/login",
    ],
    [
      'container of resourceFieldRef',
      { env: [{ name: 'A', valueFrom: { resourceFieldRef: { containerName: 'no', resource: 'limits.cpu' } } }] },
      'container no not found',
    ],
    [
      'volume',
      { volumeMounts: [{ name: 'v', mountPath: '/v' }] },
      'cannot find volume "v" to mount into container "c"',
    ],
  ];
  it.each(failures)(
    'a container with a missing %s is rejected with CreateContainerConfigError',
    (_what, container, message) => {
      expect(() => build(container)).toThrow(
        expect.objectContaining({ message, reason: 'CreateContainerConfigError' }) as unknown as Error,
      );
    },
  );
});

describe('containerConfig', () => {
  it('containerConfig() expands the command with all variables', () => {
    const config = build({
      command: ['sh', '-c', 'echo $(X) $$(X)'],
      args: ['$(KUBERNETES_SERVICE_PORT)'],
      env: [{ name: 'X', value: '1' }],
    });
    expect(config.command).toEqual(['sh', '-c', 'echo 1 $(X)']);
    expect(config.args).toEqual(['443']);
    expect(config).toMatchObject({ name: 'c', kind: 'app', attempt: 3, imageId: 'sha256:1', logPath: 'c/3.log' });
    expect(config.annotations).toEqual({ 'lifepod/backoff-seconds': '40' });
  });

  it('containerConfig() mounts volumes, /etc/hosts and the termination message', () => {
    const config = build(
      {
        terminationMessagePath: '/dev/termination-log',
        env: [{ name: 'SUB', value: 'x/y' }],
        volumeMounts: [
          { name: 'data', mountPath: '/data', readOnly: true },
          { name: 'conf', mountPath: 'conf' },
          { name: 'data', mountPath: '/sub', subPathExpr: '$(SUB)', mountPropagation: 'HostToContainer' },
        ],
      },
      {
        volumes: [
          { name: 'data', emptyDir: {} },
          { name: 'conf', configMap: { name: 'settings' } },
        ],
      },
    );
    expect(config.mounts).toEqual([
      { hostPath: '/d/pods/u1/volumes/data', containerPath: '/data', readOnly: true, propagation: 'None' },
      { hostPath: '/d/pods/u1/volumes/conf', containerPath: '/conf', readOnly: true, propagation: 'None' },
      {
        hostPath: '/d/pods/u1/volume-subpaths/data/c/2',
        containerPath: '/sub',
        readOnly: false,
        propagation: 'HostToContainer',
      },
      { hostPath: '/d/pods/u1/etc-hosts', containerPath: '/etc/hosts', readOnly: false },
      { hostPath: '/d/pods/u1/containers/c/3', containerPath: '/dev/termination-log', readOnly: false },
    ]);
  });

  it('containerConfig() mounts image volumes and read-only claims read-only regardless of the volumeMount', () => {
    const volumes = [
      { name: 'image', image: { reference: 'files:1' } },
      { name: 'claim', persistentVolumeClaim: { claimName: 'c', readOnly: true } },
      { name: 'open', persistentVolumeClaim: { claimName: 'c' } },
    ];
    const volumeMounts = volumes.map(({ name }) => ({ name, mountPath: `/${name}` }));
    const { mounts } = build({ volumeMounts }, { volumes });
    expect(mounts.slice(0, 3).map(({ readOnly }) => readOnly)).toEqual([true, true, false]);
  });

  it.each([
    ['with ..', '../x', "unable to provision SubPath `../x`: must not contain '..'"],
    ['that is absolute', '/x', 'error SubPath `/x` must not be an absolute path'],
    [
      'longer than 4096 characters',
      'a/'.repeat(2049),
      'failed to prepare subPath for volumeMount "v" of container "c"',
    ],
  ])('containerConfig() rejects a subPath %s', (_what, subPath, message) => {
    const mounts = { volumeMounts: [{ name: 'v', mountPath: '/v', subPath }] };
    expect(() => build(mounts, { volumes: [{ name: 'v', emptyDir: {} }] })).toThrow(message);
  });

  it('containerConfig() rejects a subPathExpr that is much longer than any path without expanding it', () => {
    const volumeMounts = [{ name: 'v', mountPath: '/v', subPathExpr: '$(MISSING)'.repeat(10_000) }];
    expect(() => build({ volumeMounts }, { volumes: [{ name: 'v', emptyDir: {} }] })).toThrow(
      'failed to prepare subPath for volumeMount "v" of container "c"',
    );
  });

  const resources: [string, Partial<Container>, object][] = [
    ['no resources', {}, { cpuShares: 2, oomScoreAdj: 1000 }],
    [
      'only requests',
      { resources: { requests: { cpu: '250m', memory: '1Gi' } } },
      { cpuShares: 256, oomScoreAdj: 750 },
    ],
    [
      'equal requests and limits',
      { resources: { limits: { cpu: '500m', memory: '128Mi' }, requests: { cpu: '500m', memory: '128Mi' } } },
      { cpuShares: 512, cpuPeriod: 100000, cpuQuota: 50000, memoryLimitBytes: 134217728, oomScoreAdj: -997 },
    ],
    [
      'a tiny CPU limit',
      { resources: { requests: { cpu: '1m' }, limits: { cpu: '5m' } } },
      { cpuShares: 2, cpuPeriod: 100000, cpuQuota: 1000, oomScoreAdj: 999 },
    ],
    ['a request of all memory', { resources: { requests: { memory: '4Gi' } } }, { cpuShares: 2, oomScoreAdj: 3 }],
  ];
  it.each(resources)('containerConfig() translates %s to CRI resources', (_what, container, expected) => {
    const full = { name: 'c', ...container };
    expect(build(full, { containers: [full] }).resources).toEqual(expected);
  });
});

describe('security', () => {
  const security = (container: object, pod: object = {}, user?: string) =>
    containerConfig(
      podOf({ securityContext: pod }),
      { name: 'c', securityContext: container },
      'app',
      0,
      0,
      { ...image, ...(user === undefined ? {} : { user }) },
      env,
    ).security;
  const table: [string, object, object, string | undefined, object][] = [
    ['no settings', {}, {}, undefined, { runAsUser: 0 }],
    ["the image's user", {}, {}, 'web', { runAsUserName: 'web' }],
    ["the container's user", { runAsUser: 5 }, { runAsUser: 9, runAsGroup: 8 }, '1', { runAsUser: 5, runAsGroup: 8 }],
    ["a group with the image's user", { runAsGroup: 7 }, {}, 'web:web', { runAsUserName: 'web', runAsGroup: 7 }],
    [
      'supplemental groups and fsGroup',
      {},
      { supplementalGroups: [1, 2], fsGroup: 3 },
      undefined,
      { supplementalGroups: [1, 2, 3] },
    ],
    [
      'restrictive settings',
      {
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { add: ['NET_ADMIN'], drop: ['ALL'] },
        seccompProfile: { type: 'RuntimeDefault' },
      },
      { seccompProfile: { type: 'Localhost', localhostProfile: 'a.json' } },
      undefined,
      {
        noNewPrivileges: true,
        readOnlyRootFilesystem: true,
        addCapabilities: ['NET_ADMIN'],
        dropCapabilities: ['ALL'],
        seccomp: { type: 'RuntimeDefault' },
      },
    ],
    [
      'Localhost profiles',
      { appArmorProfile: { type: 'Localhost', localhostProfile: 'web' } },
      { seccompProfile: { type: 'Localhost', localhostProfile: 'a.json' } },
      undefined,
      {
        seccomp: { type: 'Localhost', localhostRef: '/d/seccomp/a.json' },
        apparmor: { type: 'Localhost', localhostRef: 'web' },
      },
    ],
    [
      'a privileged container',
      { privileged: true, procMount: 'Unmasked' },
      {},
      undefined,
      { privileged: true, procMount: 'Unmasked' },
    ],
    [
      'SELinux options of the container and a policy for supplemental groups',
      { seLinuxOptions: { level: 's0:c1' } },
      { seLinuxOptions: { type: 'shared_t' }, supplementalGroups: [7], supplementalGroupsPolicy: 'Strict' },
      undefined,
      { seLinux: { level: 's0:c1' }, supplementalGroups: [7], supplementalGroupsPolicy: 'Strict' },
    ],
    [
      "the Pod's SELinux options",
      {},
      { seLinuxOptions: { type: 'shared_t' } },
      undefined,
      { seLinux: { type: 'shared_t' } },
    ],
    ['runAsNonRoot with a non-root image', { runAsNonRoot: true }, {}, '1000:1000', { runAsUser: 1000 }],
    ["the container's runAsNonRoot over the Pod's", { runAsNonRoot: false }, { runAsNonRoot: true }, undefined, {}],
  ];
  it.each(table)('the security configuration applies %s', (_what, container, pod, user, expected) => {
    const usual = { seccomp: { type: 'Unconfined' }, ...(user === undefined ? { runAsUser: 0 } : {}) };
    expect(security(container, pod, user)).toEqual({ ...usual, ...expected });
  });

  const about = '(pod: "p1_ns1(u1)", container: c)';
  const refusals: [string, object, string | undefined, string][] = [
    ['an image without a user', {}, undefined, `container has runAsNonRoot and image will run as root ${about}`],
    ['an image with user 0', {}, '0:5', `container has runAsNonRoot and image will run as root ${about}`],
    [
      'an image with a user name',
      {},
      'web',
      `container has runAsNonRoot and image has non-numeric user (web), cannot verify user is non-root ${about}`,
    ],
    ['runAsUser 0', { runAsUser: 0 }, '5', `container's runAsUser breaks non-root policy ${about}`],
  ];
  it.each(refusals)('runAsNonRoot rejects %s', (_what, container, user, message) => {
    expect(() => security(container, { runAsNonRoot: true }, user)).toThrow(message);
  });
});

describe('mounts that depend on the machine', () => {
  const volumes = [
    { name: 'own', emptyDir: {} },
    { name: 'host', hostPath: { path: '/h' } },
  ];
  const mounts = (recursiveReadOnly: string | undefined, more: Partial<PodEnvironment>) => {
    const volumeMounts = volumes.map(({ name }) => ({
      name,
      mountPath: `/${name}`,
      readOnly: true,
      ...(recursiveReadOnly === undefined ? {} : { recursiveReadOnly }),
    }));
    const container = { name: 'c', volumeMounts, terminationMessagePath: '/log' };
    const pod = podOf({ volumes, containers: [container] });
    return containerConfig(pod, container, 'app', 0, 0, image, { ...env, ...more }).mounts;
  };
  const runtimeFeatures = {
    supplementalGroupsPolicy: true,
    handlers: [
      { name: '', recursiveReadOnlyMounts: true },
      { name: 'old', recursiveReadOnlyMounts: false },
    ],
  };
  const refused = 'volume "own" requested recursive read-only mode, but it is not supported by the runtime';

  it('mounts are recursively read-only if requested and supported by the handler', () => {
    for (const wanted of ['Enabled', 'IfPossible'])
      expect(mounts(wanted, { runtimeFeatures })[0]).toMatchObject({ readOnly: true, recursiveReadOnly: true });
    for (const wanted of [undefined, 'Disabled'])
      expect(mounts(wanted, { runtimeFeatures })[0]).not.toHaveProperty('recursiveReadOnly');
  });

  it('recursive read-only mounts are rejected for Enabled and not recursive for IfPossible without support by the handler', () => {
    for (const more of [{}, { runtimeFeatures, runtimeHandler: 'old' }]) {
      expect(() => mounts('Enabled', more)).toThrow(refused);
      expect(mounts('IfPossible', more)[0]).not.toHaveProperty('recursiveReadOnly');
    }
  });

  it("mounts of the Pod's own files are relabeled on a machine with SELinux", () => {
    const relabeled = (seLinux: boolean) =>
      mounts(undefined, { seLinux }).flatMap(({ containerPath, relabel }) => (relabel ? [containerPath] : []));
    expect(relabeled(true)).toEqual(['/own', '/etc/hosts', '/log']);
    expect(relabeled(false)).toEqual([]);
  });
});

describe('sandboxConfig', () => {
  it('sandboxConfig() builds the configuration of a Pod with ports, sysctls and a shared process namespace', () => {
    const ports = [
      { containerPort: 80, hostPort: 8080, protocol: 'TCP' },
      { containerPort: 81, hostPort: 8081, protocol: 'UDP', hostIP: '127.0.0.1' },
      { containerPort: 82, name: 'web' },
    ];
    const config = sandboxConfig(
      podOf(
        {
          containers: [{ name: 'c', ports }],
          shareProcessNamespace: true,
          securityContext: { sysctls: [{ name: 'net/core/somaxconn', value: '1' }] },
        },
        { labels: { app: 'x' }, annotations: { note: 'y' } },
      ),
      2,
      env,
    );
    expect(config).toEqual({
      pod: { uid: 'u1', namespace: 'ns1', name: 'p1' },
      attempt: 2,
      hostname: 'p1',
      logDirectory: '/d/logs/ns1_p1_u1',
      labels: { app: 'x' },
      allLabels: { app: 'x' },
      namedPorts: [{ containerPort: 82, name: 'web' }],
      annotations: { note: 'y' },
      dns: {
        servers: ['10.96.0.10'],
        searches: ['ns1.svc.cluster.local', 'svc.cluster.local', 'cluster.local', 'example.com'],
        options: ['ndots:5'],
      },
      portMappings: [
        { protocol: 'TCP', containerPort: 80, hostPort: 8080 },
        { protocol: 'UDP', containerPort: 81, hostPort: 8081, hostIp: '127.0.0.1' },
      ],
      shareProcessNamespace: true,
      sysctls: { 'net.core.somaxconn': '1' },
    });
  });

  const hostnames: [string, Partial<Pod['spec']>, object, string][] = [
    ['spec.hostname', { hostname: 'web' }, {}, 'web'],
    ['its name, cut to 63 characters without a final dot', {}, { name: `${'a'.repeat(62)}.b` }, 'a'.repeat(62)],
    [
      'its domain name with setHostnameAsFQDN',
      { hostname: 'web', subdomain: 'sub', setHostnameAsFQDN: true },
      {},
      'web.sub.ns1.svc.cluster.local',
    ],
    ['none with hostNetwork', { hostNetwork: true }, {}, ''],
  ];
  it.each(hostnames)('the hostname of a Pod is %s', (_what, spec, metadata, expected) => {
    expect(sandboxConfig(podOf(spec, metadata), 0, env).hostname).toBe(expected);
  });

  const host = { servers: ['8.8.8.8'], searches: ['example.com'], options: ['timeout:1'] };
  const dns: [string, Partial<Pod['spec']>, object][] = [
    ['dnsPolicy Default', { dnsPolicy: 'Default' }, host],
    ['dnsPolicy ClusterFirst and hostNetwork', { dnsPolicy: 'ClusterFirst', hostNetwork: true }, host],
    [
      'dnsPolicy ClusterFirstWithHostNet and hostNetwork',
      { dnsPolicy: 'ClusterFirstWithHostNet', hostNetwork: true },
      { servers: ['10.96.0.10'], options: ['ndots:5'] },
    ],
    [
      'dnsPolicy None and a dnsConfig',
      {
        dnsPolicy: 'None',
        dnsConfig: {
          nameservers: ['1.1.1.1'],
          searches: ['a'],
          options: [{ name: 'ndots', value: '2' }, { name: 'edns0' }],
        },
      },
      { servers: ['1.1.1.1'], searches: ['a'], options: ['ndots:2', 'edns0'] },
    ],
    [
      'a dnsConfig with more than three nameservers',
      { dnsConfig: { nameservers: ['10.96.0.10', '1', '2', '3'], options: [{ name: 'ndots', value: '1' }] } },
      { servers: ['10.96.0.10', '1', '2'], options: ['ndots:1'] },
    ],
  ];
  it.each(dns)('podDnsConfig() returns the DNS configuration of a Pod with %s', (_what, spec, expected) => {
    expect(sandboxConfig(podOf(spec), 0, env).dns).toMatchObject(expected);
  });

  it('podDnsConfig() reports nameservers and search paths that exceed the limits', () => {
    const searches = ['a', 'b'.repeat(254), ...Array.from({ length: 40 }, (_, index) => `s${index}`)];
    const spec = { dnsConfig: { nameservers: ['1.1.1.1', '1.1.1.2', '1.1.1.3'], searches } };
    const { config, cut } = podDnsConfig(podOf(spec), env.dns);
    expect([config.searches.length, config.searches.slice(3, 6)]).toEqual([31, ['example.com', 'a', 's0']]);
    expect(cut).toEqual([
      'Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: 10.96.0.10 1.1.1.1 1.1.1.2',
      `Search Line limits were exceeded, some search paths have been omitted, the applied search line is: ${config.searches.join(' ')}`,
    ]);
    expect(podDnsConfig(podOf(), env.dns).cut).toEqual([]);
  });
});

describe('etcHosts', () => {
  it('the hosts file contains the Pod and its aliases', () => {
    const text = etcHosts(
      podOf({ hostname: 'h', subdomain: 's', hostAliases: [{ ip: '9.9.9.9', hostnames: ['a', 'b'] }] }),
      env,
      '',
    );
    expect(text).toMatch(/^# Kubernetes-managed hosts file\.\n127\.0\.0\.1\tlocalhost\n/);
    expect(text).toContain('10.0.0.7\th.s.ns1.svc.cluster.local\th\n');
    expect(text).toMatch(/\n\n# Entries added by HostAliases\.\n9\.9\.9\.9\ta\tb\n$/);
  });
  it('the hosts file has a line for each address of the Pod', () => {
    const text = etcHosts(podOf(), { ...env, podIps: ['10.0.0.7', 'fd00::7'] }, '');
    expect(text).toMatch(/\n10\.0\.0\.7\tp1\nfd00::7\tp1\n$/);
  });
  it("the hosts file of a Pod with hostNetwork is the node's", () => {
    expect(etcHosts(podOf({ hostNetwork: true }), env, '127.0.0.1 localhost\n')).toBe(
      '# Kubernetes-managed hosts file (host network).\n127.0.0.1 localhost\n',
    );
  });
});

describe('parseResolvConf', () => {
  it('parseResolvConf() reads servers, searches and options', () => {
    expect(
      parseResolvConf('# x\nnameserver 1.2.3.4\nsearch a b. .\n;c\noptions ndots:2 rotate\nnameserver ::1\n'),
    ).toEqual({
      servers: ['1.2.3.4', '::1'],
      searches: ['a', 'b'],
      options: ['ndots:2', 'rotate'],
    });
  });
});
