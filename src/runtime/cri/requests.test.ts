import { existsSync, readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { ContainerConfig, SandboxConfig } from '../runtime.ts';
import { containerMessage, sandboxMessage } from './requests.ts';

const pod = { uid: 'uid', namespace: 'default', name: 'pod' };
const sandbox: SandboxConfig = {
  pod,
  attempt: 2,
  hostname: 'host',
  logDirectory: '/logs',
  labels: {},
  annotations: {},
};
const container: ContainerConfig = {
  pod,
  name: 'app',
  kind: 'init',
  attempt: 3,
  imageId: 'sha256:1',
  imageName: 'busybox',
  env: [],
  mounts: [],
  logPath: 'app/3.log',
  annotations: {},
  resources: {},
  security: {},
};
const CPUS = '/sys/devices/system/cpu';
const podLabels = {
  'io.kubernetes.pod.uid': 'uid',
  'io.kubernetes.pod.name': 'pod',
  'io.kubernetes.pod.namespace': 'default',
};

interface Message extends Record<string, unknown> {
  linux: Record<string, unknown> & { securityContext: Record<string, unknown> };
}
const encoded = (message: object): Message => JSON.parse(JSON.stringify(message)) as Message;
const sandboxSecurity = (config: Partial<SandboxConfig>, privileged?: boolean): object =>
  encoded(sandboxMessage({ ...sandbox, ...config }, {}, privileged)).linux.securityContext;
const messageOf = (config: Partial<ContainerConfig>, inSandbox: Partial<SandboxConfig> = {}) =>
  encoded(containerMessage({ ...container, ...config }, { ...sandbox, ...inSandbox }, { scope: 'mine' }));
const securityOf = (
  security: ContainerConfig['security'],
  inSandbox: Partial<SandboxConfig> = {},
): Record<string, unknown> => messageOf({ security }, inSandbox).linux.securityContext;

test("the message of a sandbox has all fields of the sandbox's configuration", () => {
  const rest = {
    annotations: { note: 'a' },
    dns: { servers: ['10.0.0.1'], searches: ['local'], options: ['ndots:5'] },
    portMappings: [{ protocol: 'TCP' as const, containerPort: 80, hostPort: 8080, hostIp: '127.0.0.1' }],
    cgroupParent: '/kubepods/pod',
    sysctls: { 'net.core.somaxconn': '9' },
    seLinux: { level: 's0' },
    supplementalGroupsPolicy: 'Strict' as const,
  };
  expect(encoded(sandboxMessage({ ...sandbox, ...rest, labels: { app: 'web' } }, { scope: 'mine' }))).toEqual({
    metadata: { name: 'pod', uid: 'uid', namespace: 'default', attempt: 2 },
    hostname: 'host',
    logDirectory: '/logs',
    dnsConfig: rest.dns,
    portMappings: rest.portMappings,
    labels: { ...podLabels, 'lifepod.io/attempt': '2', app: 'web', scope: 'mine' },
    annotations: { note: 'a' },
    linux: {
      cgroupParent: '/kubepods/pod',
      sysctls: rest.sysctls,
      securityContext: {
        namespaceOptions: { network: 'POD', pid: 'CONTAINER', ipc: 'POD' },
        privileged: false,
        seccomp: { profileType: 'RuntimeDefault' },
        selinuxOptions: { level: 's0' },
        supplementalGroupsPolicy: 'Strict',
      },
    },
  });
});

test("labels of the Pod replace neither lifepod's labels of the sandbox nor the labels of the instance", () => {
  const labels = { 'io.kubernetes.pod.uid': 'forged', 'lifepod.io/attempt': '9', scope: 'forged', app: 'web' };
  expect(sandboxMessage({ ...sandbox, labels }, { scope: 'mine' })).toMatchObject({
    labels: { ...podLabels, 'lifepod.io/attempt': '2', scope: 'mine', app: 'web' },
  });
});

test('a sandbox without a cgroup parent leaves the parent to the runtime', () => {
  expect(encoded(sandboxMessage(sandbox, {})).linux['cgroupParent']).toBe('');
});

test.each<[Partial<SandboxConfig>, boolean | undefined, boolean]>([
  [{}, undefined, false],
  [{ privileged: false }, undefined, false],
  [{ privileged: true }, undefined, true],
  [{ privileged: true }, false, false],
  [{}, true, true],
])('the sandbox with %j and the argument %j is privileged: %s', (config, argument, expected) => {
  expect(sandboxSecurity(config, argument)).toMatchObject({ privileged: expected });
});

const namespaces = [
  [{}, { network: 'POD', pid: 'CONTAINER', ipc: 'POD' }],
  [
    { hostNetwork: false, hostPid: false, hostIpc: false, shareProcessNamespace: false },
    { network: 'POD', pid: 'CONTAINER', ipc: 'POD' },
  ],
  [{ hostNetwork: true }, { network: 'NODE', pid: 'CONTAINER', ipc: 'POD' }],
  [{ hostPid: true }, { network: 'POD', pid: 'NODE', ipc: 'POD' }],
  [{ hostIpc: true }, { network: 'POD', pid: 'CONTAINER', ipc: 'NODE' }],
  [{ shareProcessNamespace: true }, { network: 'POD', pid: 'POD', ipc: 'POD' }],
  [
    { hostPid: true, shareProcessNamespace: true },
    { network: 'POD', pid: 'NODE', ipc: 'POD' },
  ],
] as const;

test.each(namespaces)('with %j, the namespaces of a sandbox and of its containers are %j', (config, expected) => {
  expect(sandboxSecurity(config)).toMatchObject({ namespaceOptions: expected });
  expect(securityOf({}, config)['namespaceOptions']).toEqual(expected);
});

test('a container with a target shares the process namespace of the target, whatever the sandbox shares', () => {
  for (const inSandbox of [{}, { hostPid: true }, { shareProcessNamespace: true }])
    expect(messageOf({ targetContainerId: 'c1' }, inSandbox).linux.securityContext).toMatchObject({
      namespaceOptions: { network: 'POD', pid: 'TARGET', targetId: 'c1', ipc: 'POD' },
    });
});

test("the message of a container has all fields of the container's configuration", () => {
  const message = messageOf({
    command: ['sh'],
    args: ['-c', 'true'],
    workingDir: '/work',
    env: [{ name: 'A', value: '1' }],
    annotations: { note: 'a' },
    stdin: true,
    stdinOnce: true,
    tty: true,
  });
  expect(message).toMatchObject({
    metadata: { name: 'app', attempt: 3 },
    image: { image: 'sha256:1', userSpecifiedImage: 'busybox' },
    command: ['sh'],
    args: ['-c', 'true'],
    workingDir: '/work',
    envs: [{ key: 'A', value: '1' }],
    annotations: { note: 'a', 'lifepod.io/image': 'busybox' },
    logPath: 'app/3.log',
    stdin: true,
    stdinOnce: true,
    tty: true,
  });
  expect(message['labels']).toEqual({
    ...podLabels,
    'io.kubernetes.container.name': 'app',
    'lifepod.io/kind': 'init',
    'lifepod.io/attempt': '3',
    scope: 'mine',
  });
});

test("a container gets the image's working directory and no input or terminal by default", () => {
  expect(messageOf({})).toMatchObject({
    workingDir: '',
    envs: [],
    mounts: [],
    stdin: false,
    stdinOnce: false,
    tty: false,
  });
});

test('a mount is writable, not relabeled and private by default', () => {
  expect(messageOf({ mounts: [{ hostPath: '/a', containerPath: '/b' }] })['mounts']).toEqual([
    {
      hostPath: '/a',
      containerPath: '/b',
      readonly: false,
      recursiveReadOnly: false,
      selinuxRelabel: false,
      propagation: 'PROPAGATION_PRIVATE',
    },
  ]);
});

test.each([
  [{ readOnly: true }, { readonly: true, recursiveReadOnly: false, selinuxRelabel: false }],
  [
    { readOnly: true, recursiveReadOnly: true },
    { readonly: true, recursiveReadOnly: true, selinuxRelabel: false },
  ],
  [{ relabel: true }, { readonly: false, recursiveReadOnly: false, selinuxRelabel: true }],
  [{ propagation: 'None' as const }, { propagation: 'PROPAGATION_PRIVATE' }],
  [{ propagation: 'HostToContainer' as const }, { propagation: 'PROPAGATION_HOST_TO_CONTAINER' }],
  [{ propagation: 'Bidirectional' as const }, { propagation: 'PROPAGATION_BIDIRECTIONAL' }],
])('a mount with %j is sent to the runtime with %j', (mount, expected) => {
  expect(messageOf({ mounts: [{ hostPath: '/a', containerPath: '/b', ...mount }] })).toMatchObject({
    mounts: [expected],
  });
});

test('the resources of a container are converted to the fields of CRI', () => {
  const resources = {
    cpuPeriod: 100_000,
    cpuQuota: 50_000,
    cpuShares: 512,
    memoryLimitBytes: 1024,
    memorySwapLimitBytes: 2048,
    oomScoreAdj: 999,
    hugepageBytes: { '2MB': 4, '1GB': 8 },
    unified: { 'memory.high': '1' },
  };
  expect(messageOf({ resources }).linux['resources']).toEqual({
    cpuPeriod: 100_000,
    cpuQuota: 50_000,
    cpuShares: 512,
    memoryLimitInBytes: 1024,
    memorySwapLimitInBytes: 2048,
    oomScoreAdj: 999,
    hugepageLimits: [
      { pageSize: '2MB', limit: 4 },
      { pageSize: '1GB', limit: 8 },
    ],
    unified: { 'memory.high': '1' },
  });
  expect(messageOf({}).linux['resources']).toEqual({ hugepageLimits: [] });
});

test('a container without a security context has only the masked and the read-only paths', () => {
  expect(securityOf({})).toEqual({
    capabilities: {},
    privileged: false,
    namespaceOptions: { network: 'POD', pid: 'CONTAINER', ipc: 'POD' },
    runAsUsername: '',
    readonlyRootfs: false,
    noNewPrivs: false,
    maskedPaths: expect.any(Array),
    readonlyPaths: ['/proc/bus', '/proc/fs', '/proc/irq', '/proc/sys', '/proc/sysrq-trigger'],
  });
});

test('all fields of a security context are sent to the runtime', () => {
  const security: ContainerConfig['security'] = {
    privileged: true,
    runAsUser: 0,
    runAsGroup: 7,
    runAsUserName: 'web',
    supplementalGroups: [8, 9],
    readOnlyRootFilesystem: true,
    noNewPrivileges: true,
    addCapabilities: ['NET_ADMIN'],
    dropCapabilities: ['ALL'],
    seccomp: { type: 'Localhost', localhostRef: '/profiles/a.json' },
    apparmor: { type: 'Unconfined' },
    seLinux: { type: 'spc_t' },
    supplementalGroupsPolicy: 'Merge',
  };
  expect(securityOf(security)).toMatchObject({
    capabilities: { addCapabilities: ['NET_ADMIN'], dropCapabilities: ['ALL'] },
    privileged: true,
    runAsUser: { value: 0 },
    runAsGroup: { value: 7 },
    runAsUsername: 'web',
    supplementalGroups: [8, 9],
    readonlyRootfs: true,
    noNewPrivs: true,
    seccomp: { profileType: 'Localhost', localhostRef: '/profiles/a.json' },
    apparmor: { profileType: 'Unconfined', localhostRef: '' },
    selinuxOptions: { type: 'spc_t' },
    supplementalGroupsPolicy: 'Merge',
  });
});

test.each([undefined, 'Default'] as const)("with procMount %j, the masked paths are upstream's", (procMount) => {
  const { maskedPaths } = securityOf(procMount === undefined ? {} : { procMount });
  const cpus = existsSync(CPUS) ? readdirSync(CPUS).filter((name) => /^cpu[0-9]+$/.test(name)) : [];
  expect(maskedPaths).toEqual([
    ...['asound', 'acpi', 'interrupts', 'kcore', 'keys', 'latency_stats'].map((name) => `/proc/${name}`),
    ...['timer_list', 'timer_stats', 'sched_debug', 'scsi'].map((name) => `/proc/${name}`),
    '/sys/firmware',
    '/sys/devices/virtual/powercap',
    ...cpus.map((name) => `${CPUS}/${name}/thermal_throttle`).filter((path) => existsSync(path)),
  ]);
});

test('with procMount Unmasked, no path is masked or read-only', () => {
  expect(securityOf({ procMount: 'Unmasked' })).toMatchObject({ maskedPaths: [], readonlyPaths: [] });
});
