import { describe, expect, it, test } from 'vitest';
import type { Container, PodSpec } from '../../../../generated/types.ts';
import { baselineControls } from './baseline.ts';
import { LISTS, safeSpec, specWith, violationLines } from './controls-fixture.ts';

const context = (securityContext: Container['securityContext']): Partial<Container> => ({ securityContext });

/** The name of each control, settings of a container that violate the control, and the violation, in which NAME is the container's name. */
const CONTAINERS: [string, Partial<Container>, string][] = [
  [
    'appArmorProfile',
    context({ appArmorProfile: { type: 'Unconfined' } }),
    'forbidden AppArmor profile: container "NAME" must not set AppArmor profile type to "Unconfined"',
  ],
  [
    'capabilities_baseline',
    context({ capabilities: { add: ['SYS_ADMIN', 'CHOWN', 'NET_RAW'] } }),
    'non-default capabilities: container "NAME" must not include "NET_RAW", "SYS_ADMIN" in securityContext.capabilities.add',
  ],
  [
    'hostPorts',
    { ports: [{ containerPort: 80, hostPort: 8080 }, { containerPort: 81, hostPort: 9090 }, { containerPort: 82 }] },
    'hostPort: container "NAME" uses hostPorts 8080, 9090',
  ],
  [
    'privileged',
    context({ privileged: true }),
    'privileged: container "NAME" must not set securityContext.privileged=true',
  ],
  [
    'procMount',
    context({ procMount: 'Unmasked' }),
    'procMount: container "NAME" must not set securityContext.procMount to "Unmasked"',
  ],
  [
    'seLinuxOptions',
    context({ seLinuxOptions: { type: 'spc_t', user: 'u', role: 'r' } }),
    'seLinuxOptions: container "NAME" set forbidden securityContext.seLinuxOptions: type "spc_t"; user may not be set; role may not be set',
  ],
  [
    'seccompProfile_baseline',
    context({ seccompProfile: { type: 'Unconfined' } }),
    'seccompProfile: container "NAME" must not set securityContext.seccompProfile.type to "Unconfined"',
  ],
  [
    'windowsHostProcess',
    context({ windowsOptions: { hostProcess: true } }),
    'hostProcess: container "NAME" must not set securityContext.windowsOptions.hostProcess=true',
  ],
];

describe.each(CONTAINERS)('%s', (_, change, violation) => {
  it.each(LISTS)('forbids the settings in %s', (list) => {
    const { spec, name } = specWith(list, change);
    expect(violationLines('baseline', spec)).toEqual([violation.replace('NAME', name)]);
  });

  it('a violation names all containers with forbidden settings, in the order of their lists', () => {
    const spec = safeSpec();
    for (const list of LISTS) spec[list] = specWith(list, change).spec[list] as Container[];
    expect(violationLines('baseline', spec).join()).toContain('containers "init", "app", "defer", "debug" ');
  });
});

/** The name of each control, settings of a Pod, and the violations of the control by these settings. */
const PODS: [string, Partial<PodSpec>, string[]][] = [
  [
    'appArmorProfile',
    { securityContext: { appArmorProfile: { type: 'Unconfined' } } },
    ['forbidden AppArmor profile: pod must not set AppArmor profile type to "Unconfined"'],
  ],
  [
    'hostNamespaces',
    { hostNetwork: true, hostPID: true, hostIPC: true },
    ['host namespaces: hostNetwork=true, hostPID=true, hostIPC=true'],
  ],
  [
    'hostPathVolumes',
    {
      volumes: [
        { name: 'b', hostPath: { path: '/' } },
        { name: 'c', emptyDir: {} },
        { name: 'a', hostPath: { path: '/' } },
      ],
    },
    ['hostPath volumes: volumes "b", "a"'],
  ],
  [
    'seLinuxOptions',
    { securityContext: { seLinuxOptions: { user: 'u' } } },
    ['seLinuxOptions: pod set forbidden securityContext.seLinuxOptions: user may not be set'],
  ],
  [
    'seccompProfile_baseline',
    { securityContext: { seccompProfile: { type: 'Unconfined' } } },
    ['seccompProfile: pod must not set securityContext.seccompProfile.type to "Unconfined"'],
  ],
  [
    'sysctls',
    {
      securityContext: {
        sysctls: [
          { name: 'net.core.somaxconn', value: '1' },
          { name: 'kernel.msgmax', value: '1' },
          { name: 'net.ipv4.tcp_syncookies', value: '1' },
        ],
      },
    },
    ['forbidden sysctls: net.core.somaxconn, kernel.msgmax'],
  ],
  [
    'windowsHostProcess',
    { securityContext: { windowsOptions: { hostProcess: true } } },
    ['hostProcess: pod must not set securityContext.windowsOptions.hostProcess=true'],
  ],
];

test.each(PODS)('%s forbids settings of the Pod', (_, change, violations) => {
  expect(violationLines('baseline', { ...safeSpec(), ...change })).toEqual(violations);
});

test('the Pod and a container that set forbidden values are both named, with each value once', () => {
  const change = context({ seccompProfile: { type: 'Unconfined' }, seLinuxOptions: { type: 'a_t' } });
  const spec: PodSpec = {
    ...specWith('deferContainers', change).spec,
    securityContext: { seccompProfile: { type: 'Unconfined' }, seLinuxOptions: { type: 'b_t', role: 'r' } },
  };
  expect(violationLines('baseline', spec)).toEqual([
    'seLinuxOptions: pod and container "defer" set forbidden securityContext.seLinuxOptions: types "a_t", "b_t"; role may not be set',
    'seccompProfile: pod and container "defer" must not set securityContext.seccompProfile.type to "Unconfined"',
  ]);
});

test('AppArmor annotations with other profiles are forbidden, together with fields', () => {
  const prefix = 'container.apparmor.security.beta.kubernetes.io';
  const annotations = {
    [`${prefix}/b`]: 'unconfined',
    [`${prefix}/a`]: 'bogus',
    [`${prefix}/c`]: 'runtime/default',
    [`${prefix}/d`]: 'localhost/x',
    [`${prefix}/e`]: '',
    'example.com/a': 'unconfined',
  };
  const forbidden = `"${prefix}/a="bogus"", "${prefix}/b="unconfined""`;
  expect(violationLines('baseline', safeSpec(), { annotations })).toEqual([
    `forbidden AppArmor profiles: annotations must not set AppArmor profile type to ${forbidden}`,
  ]);
  const { spec } = specWith('containers', context({ appArmorProfile: { type: 'Unconfined' } }));
  expect(violationLines('baseline', spec, { annotations: { [`${prefix}/b`]: 'unconfined' } })).toEqual([
    `forbidden AppArmor profiles: container "app" and annotation must not set AppArmor profile type to "Unconfined", "${prefix}/b="unconfined""`,
  ]);
});

const ALLOWED: [string, Partial<PodSpec>, Partial<Container>][] = [
  [
    'appArmorProfile',
    { securityContext: { appArmorProfile: { type: 'RuntimeDefault' } } },
    context({ appArmorProfile: { type: 'Localhost', localhostProfile: 'p' } }),
  ],
  [
    'capabilities_baseline',
    {},
    context({
      capabilities: {
        add: 'AUDIT_WRITE CHOWN DAC_OVERRIDE FOWNER FSETID KILL MKNOD NET_BIND_SERVICE SETFCAP SETGID SETPCAP SETUID SYS_CHROOT'.split(
          ' ',
        ),
      },
    }),
  ],
  ['hostNamespaces', { hostNetwork: false, hostPID: false, hostIPC: false }, {}],
  ['hostPathVolumes', { volumes: [{ name: 'a', nfs: { server: 's', path: '/' } }] }, {}],
  ['hostPorts', {}, { ports: [{ containerPort: 80 }, { containerPort: 81, hostPort: 0 }] }],
  ['privileged', {}, context({ privileged: false })],
  ['procMount', {}, context({ procMount: 'Default' })],
  [
    'seLinuxOptions',
    { securityContext: { seLinuxOptions: { type: 'container_t', level: 's0' } } },
    context({ seLinuxOptions: { type: 'container_engine_t' } }),
  ],
  [
    'seccompProfile_baseline',
    { securityContext: { seccompProfile: { type: 'RuntimeDefault' } } },
    context({ seccompProfile: { type: 'Localhost', localhostProfile: 'p' } }),
  ],
  ['sysctls', { securityContext: { sysctls: [{ name: 'net.ipv4.tcp_rmem', value: '1' }] } }, {}],
  [
    'windowsHostProcess',
    { securityContext: { windowsOptions: { hostProcess: false } } },
    context({ windowsOptions: { hostProcess: false } }),
  ],
];

describe.each(ALLOWED)('%s', (_, ofPod, ofContainer) => {
  it.each(LISTS)('allows other settings of the Pod and in %s', (list) => {
    expect(violationLines('baseline', { ...specWith(list, ofContainer).spec, ...ofPod })).toEqual([]);
  });
});

test('every control has a case that it forbids and a case that it allows', () => {
  const ids = baselineControls.map(({ id }) => id);
  expect(ids).toEqual([...ids].sort());
  const forbidden = new Set([...CONTAINERS, ...PODS].map(([id]) => id));
  expect([...forbidden].sort()).toEqual(ids);
  expect(ALLOWED.map(([id]) => id)).toEqual(ids);
});

const sysctl = (name: string): PodSpec => ({ ...safeSpec(), securityContext: { sysctls: [{ name, value: '1' }] } });

test.each([
  ['kernel.shm_rmid_forced', 0],
  ['net.ipv4.ip_local_port_range', 0],
  ['net.ipv4.ip_local_reserved_ports', 27],
  ['net.ipv4.tcp_keepalive_time', 29],
  ['net.ipv4.tcp_fin_timeout', 29],
  ['net.ipv4.tcp_keepalive_intvl', 29],
  ['net.ipv4.tcp_keepalive_probes', 29],
  ['net.ipv4.tcp_rmem', 32],
  ['net.ipv4.tcp_wmem', 32],
])('the sysctl %s is allowed since v1.%i', (name, since) => {
  expect(violationLines('baseline', sysctl(name), { version: `v1.${since}` })).toEqual([]);
  if (since > 0)
    expect(violationLines('baseline', sysctl(name), { version: `v1.${since - 1}` })).toEqual([
      `forbidden sysctls: ${name}`,
    ]);
});

test('the SELinux type container_engine_t is allowed since v1.31', () => {
  const { spec } = specWith('containers', context({ seLinuxOptions: { type: 'container_engine_t' } }));
  expect(violationLines('baseline', spec, { version: 'v1.31' })).toEqual([]);
  expect(violationLines('baseline', spec, { version: 'v1.30' })).toEqual([
    'seLinuxOptions: container "app" set forbidden securityContext.seLinuxOptions: type "container_engine_t"',
  ]);
});

test('before v1.19, annotations for seccomp are evaluated instead of fields', () => {
  const prefix = 'container.seccomp.security.alpha.kubernetes.io/';
  const annotations = {
    'seccomp.security.alpha.kubernetes.io/pod': 'unconfined',
    [`${prefix}defer`]: 'unconfined',
    [`${prefix}init`]: 'docker/default',
    [`${prefix}app`]: 'localhost/p',
    [`${prefix}none`]: 'unconfined',
  };
  const { spec } = specWith('containers', context({ seccompProfile: { type: 'Unconfined' } }));
  expect(violationLines('baseline', spec, { annotations, version: 'v1.18' })).toEqual([
    `seccompProfile: forbidden annotations ${prefix}defer="unconfined", seccomp.security.alpha.kubernetes.io/pod="unconfined"`,
  ]);
  expect(violationLines('baseline', safeSpec(), { annotations, version: 'v1.19' })).toEqual([]);
});
