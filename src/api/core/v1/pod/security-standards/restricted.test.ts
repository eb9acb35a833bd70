import { describe, expect, it, test } from 'vitest';
import type { Container, PodSpec, Volume } from '../../../../generated/types.ts';
import { LISTS, safeSpec, specWith, violationLines } from './controls-fixture.ts';
import { restrictedControls } from './restricted.ts';

const context = (securityContext: Container['securityContext']): Partial<Container> => ({ securityContext });

/** The name of each control, settings of a container that violate the control, and the violation, in which NAME is the container's name. */
const CONTAINERS: [string, Partial<Container>, string][] = [
  [
    'allowPrivilegeEscalation',
    context({ allowPrivilegeEscalation: true }),
    'allowPrivilegeEscalation != false: container "NAME" must set securityContext.allowPrivilegeEscalation=false',
  ],
  [
    'allowPrivilegeEscalation',
    context({ allowPrivilegeEscalation: undefined }),
    'allowPrivilegeEscalation != false: container "NAME" must set securityContext.allowPrivilegeEscalation=false',
  ],
  [
    'capabilities_restricted',
    context({ capabilities: undefined }),
    'unrestricted capabilities: container "NAME" must set securityContext.capabilities.drop=["ALL"]',
  ],
  [
    'capabilities_restricted',
    context({ capabilities: { drop: ['NET_RAW'], add: ['NET_BIND_SERVICE', 'SYS_TIME', 'CHOWN'] } }),
    'unrestricted capabilities: container "NAME" must set securityContext.capabilities.drop=["ALL"]; container "NAME" must not include "CHOWN", "SYS_TIME" in securityContext.capabilities.add',
  ],
  [
    'runAsNonRoot',
    context({ runAsNonRoot: false }),
    'runAsNonRoot != true: container "NAME" must not set securityContext.runAsNonRoot=false',
  ],
  [
    'runAsNonRoot',
    context({ runAsNonRoot: undefined }),
    'runAsNonRoot != true: pod or container "NAME" must set securityContext.runAsNonRoot=true',
  ],
  ['runAsUser', context({ runAsUser: 0 }), 'runAsUser=0: container "NAME" must not set runAsUser=0'],
  [
    'seccompProfile_restricted',
    context({ seccompProfile: { type: 'Unconfined' } }),
    'seccompProfile: container "NAME" must not set securityContext.seccompProfile.type to "Unconfined"',
  ],
  [
    'seccompProfile_restricted',
    context({ seccompProfile: undefined }),
    'seccompProfile: pod or container "NAME" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"',
  ],
];

describe.each(CONTAINERS)('%s', (_, change, violation) => {
  it.each(LISTS)(`reports ${JSON.stringify(violation)} in %s`, (list) => {
    const { spec, name } = specWith(list, change);
    expect(violationLines('restricted', spec)).toEqual([violation.replaceAll('NAME', name)]);
  });
});

const volume = (name: string, source: Partial<Volume>): Volume => ({ name, ...source });

const PODS: [string, Partial<PodSpec>, string[]][] = [
  [
    'restrictedVolumes',
    {
      volumes: [
        volume('b', { nfs: { server: 's', path: '/' } }),
        volume('a', { hostPath: { path: '/' } }),
        volume('c', { image: { reference: 'i' } }),
        volume('d', { emptyDir: {} }),
      ],
    },
    ['restricted volume types: volumes "b", "a", "c" use restricted volume types "hostPath", "nfs", "unknown"'],
  ],
  [
    'restrictedVolumes',
    { volumes: [volume('a', { hostPath: { path: '/' } })] },
    ['restricted volume types: volume "a" uses restricted volume type "hostPath"'],
  ],
  [
    'runAsNonRoot',
    { securityContext: { runAsNonRoot: false } },
    ['runAsNonRoot != true: pod must not set securityContext.runAsNonRoot=false'],
  ],
  ['runAsUser', { securityContext: { runAsUser: 0 } }, ['runAsUser=0: pod must not set runAsUser=0']],
  [
    'seccompProfile_restricted',
    { securityContext: { seccompProfile: { type: 'Unconfined' } } },
    ['seccompProfile: pod must not set securityContext.seccompProfile.type to "Unconfined"'],
  ],
];

test.each(PODS)('%s forbids settings of the Pod: %j', (_, change, violations) => {
  expect(violationLines('restricted', { ...safeSpec(), ...change })).toEqual(violations);
});

const unset = context({ runAsNonRoot: undefined, seccompProfile: undefined });

const ALLOWED: [string, Partial<PodSpec>, Partial<Container>][] = [
  ['allowPrivilegeEscalation', {}, {}],
  ['capabilities_restricted', {}, context({ capabilities: { drop: ['ALL'], add: ['NET_BIND_SERVICE'] } })],
  [
    'restrictedVolumes',
    {
      volumes: [
        volume('a', { configMap: { name: 'c' } }),
        volume('b', { csi: { driver: 'd' } }),
        volume('c', { downwardAPI: {} }),
        volume('d', { emptyDir: {} }),
        volume('e', { ephemeral: {} }),
        volume('f', { persistentVolumeClaim: { claimName: 'c' } }),
        volume('g', { projected: { sources: [] } }),
        volume('h', { secret: { secretName: 's' } }),
      ],
    },
    {},
  ],
  ['runAsNonRoot', { securityContext: { runAsNonRoot: true } }, context({ runAsNonRoot: undefined })],
  ['runAsUser', { securityContext: { runAsUser: 1 } }, context({ runAsUser: 65535 })],
  [
    'seccompProfile_restricted',
    { securityContext: { runAsNonRoot: true, seccompProfile: { type: 'Localhost', localhostProfile: 'p' } } },
    unset,
  ],
];

describe.each(ALLOWED)('%s', (_, ofPod, ofContainer) => {
  it.each(LISTS)('allows other settings of the Pod and in %s', (list) => {
    expect(violationLines('restricted', { ...specWith(list, ofContainer).spec, ...ofPod })).toEqual([]);
  });
});

test('every control has a case that it forbids and a case that it allows', () => {
  const ids = restrictedControls.map(({ id }) => id);
  expect(ids).toEqual([...ids].sort());
  expect([...new Set([...CONTAINERS, ...PODS].map(([id]) => id))].sort()).toEqual(ids);
  expect(ALLOWED.map(([id]) => id)).toEqual(ids);
});

test('all containers that lack a setting are named, and a forbidden value of the Pod is reported first', () => {
  const spec = safeSpec();
  for (const list of LISTS) spec[list] = specWith(list, unset).spec[list] as Container[];
  expect(violationLines('restricted', spec)).toEqual([
    'runAsNonRoot != true: pod or containers "init", "app", "defer", "debug" must set securityContext.runAsNonRoot=true',
    'seccompProfile: pod or containers "init", "app", "defer", "debug" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"',
  ]);
  const { spec: own } = specWith('deferContainers', context({ runAsNonRoot: false }));
  expect(violationLines('restricted', { ...own, securityContext: { runAsNonRoot: false } })).toEqual([
    'runAsNonRoot != true: pod and container "defer" must not set securityContext.runAsNonRoot=false',
  ]);
});

test.each([
  ['allowPrivilegeEscalation', 8, context({ allowPrivilegeEscalation: true })],
  ['capabilities', 22, context({ capabilities: undefined })],
  ['runAsUser', 23, context({ runAsUser: 0 })],
  ['seccompProfile', 19, context({ seccompProfile: undefined })],
])('%s is evaluated since v1.%i', (reason, since, change) => {
  const { spec } = specWith('containers', change);
  expect(violationLines('restricted', spec, { version: `v1.${since - 1}` })).toEqual([]);
  expect(violationLines('restricted', spec, { version: `v1.${since}` }).join()).toContain(reason);
});

test('since v1.25, Pods for Windows need no settings that Windows does not have', () => {
  const change = context({ allowPrivilegeEscalation: undefined, capabilities: undefined, seccompProfile: undefined });
  const spec: PodSpec = { ...specWith('containers', change).spec, os: { name: 'windows' } };
  expect(violationLines('restricted', spec, { version: 'v1.25' })).toEqual([]);
  expect(violationLines('restricted', spec, { version: 'v1.24' })).toHaveLength(3);
  expect(violationLines('restricted', { ...spec, os: { name: 'linux' } })).toHaveLength(3);
  const asRoot = context({ runAsNonRoot: undefined, runAsUser: 0 });
  expect(violationLines('restricted', { ...specWith('containers', asRoot).spec, os: { name: 'windows' } })).toEqual([
    'runAsNonRoot != true: pod or container "app" must set securityContext.runAsNonRoot=true',
    'runAsUser=0: container "app" must not set runAsUser=0',
  ]);
});

test('Pods with user namespaces are evaluated like others, as in v1.33 by default', () => {
  const change = context({ procMount: 'Unmasked', runAsNonRoot: undefined, runAsUser: 0 });
  const spec: PodSpec = { ...specWith('containers', change).spec, hostUsers: false };
  expect(violationLines('restricted', spec)).toHaveLength(3);
});
