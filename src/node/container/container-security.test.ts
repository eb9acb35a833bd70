import { describe, expect, it } from 'vitest';
import { containerOf, podOf } from '../../api/core/v1/pod/pod-fixtures.ts';
import type { PodSecurityContext, SecurityContext } from '../../api/generated/types.ts';
import { ContainerConfigError } from './container-config-error.ts';
import { containerSecurity, groupsPolicy } from './container-security.ts';

interface Given {
  own?: SecurityContext;
  shared?: PodSecurityContext;
  user?: string;
}

const securityOf = ({ own, shared, user }: Given) =>
  containerSecurity(
    podOf({ securityContext: shared }),
    containerOf('app', { securityContext: own }),
    { id: 'i', tags: [], digests: [], sizeBytes: 1, user },
    '/profiles',
  );
const PLAIN = {
  runAsUser: 0,
  runAsGroup: undefined,
  addCapabilities: undefined,
  dropCapabilities: undefined,
  seccomp: { type: 'Unconfined' },
  apparmor: undefined,
  seLinux: undefined,
};

it('a container without settings runs as root, without confinement by seccomp, and has no optional field', () => {
  expect(securityOf({})).toStrictEqual(PLAIN);
});

it('a Pod without a spec yields the default security context', () => {
  const pod = { ...podOf(), spec: undefined };
  expect(
    containerSecurity(pod, containerOf('app'), { id: 'i', tags: [], digests: [], sizeBytes: 1 }, '/'),
  ).toStrictEqual(PLAIN);
  expect(groupsPolicy(pod)).toEqual({});
});

const inherited: [string, PodSecurityContext, SecurityContext, object, object][] = [
  ['runAsUser', { runAsUser: 5 }, { runAsUser: 0 }, { runAsUser: 5 }, { runAsUser: 0 }],
  ['runAsGroup', { runAsGroup: 5 }, { runAsGroup: 0 }, { runAsGroup: 5 }, { runAsGroup: 0 }],
  [
    'seccompProfile',
    { seccompProfile: { type: 'Localhost', localhostProfile: 'deep/a.json' } },
    { seccompProfile: { type: 'RuntimeDefault' } },
    { seccomp: { type: 'Localhost', localhostRef: '/profiles/deep/a.json' } },
    { seccomp: { type: 'RuntimeDefault' } },
  ],
  [
    'appArmorProfile',
    { appArmorProfile: { type: 'Localhost', localhostProfile: 'web' } },
    { appArmorProfile: { type: 'Unconfined' } },
    { apparmor: { type: 'Localhost', localhostRef: 'web' } },
    { apparmor: { type: 'Unconfined' } },
  ],
  [
    'seLinuxOptions',
    { seLinuxOptions: { type: 'shared_t', level: 's0' } },
    { seLinuxOptions: { level: 's0:c1' } },
    { seLinux: { type: 'shared_t', level: 's0' } },
    { seLinux: { level: 's0:c1' } },
  ],
];
it.each(inherited)("a container uses the Pod's %s unless it has its own", (_field, shared, own, ofPod, ofContainer) => {
  expect(securityOf({ shared })).toStrictEqual({ ...PLAIN, ...ofPod });
  expect(securityOf({ own })).toStrictEqual({ ...PLAIN, ...ofContainer });
  expect(securityOf({ shared, own })).toStrictEqual({ ...PLAIN, ...ofContainer });
});

const switches: [string, SecurityContext, SecurityContext, object][] = [
  ['privileged: true', { privileged: true }, { privileged: false }, { privileged: true }],
  [
    'readOnlyRootFilesystem: true',
    { readOnlyRootFilesystem: true },
    { readOnlyRootFilesystem: false },
    { readOnlyRootFilesystem: true },
  ],
  [
    'allowPrivilegeEscalation: false',
    { allowPrivilegeEscalation: false },
    { allowPrivilegeEscalation: true },
    { noNewPrivileges: true },
  ],
  ['procMount: Unmasked', { procMount: 'Unmasked' }, { procMount: 'Default' }, { procMount: 'Unmasked' }],
];
it.each(switches)('%s changes the security context, and the opposite value does not', (_what, on, off, expected) => {
  expect(securityOf({ own: on })).toStrictEqual({ ...PLAIN, ...expected });
  expect(securityOf({ own: off })).toStrictEqual(PLAIN);
});

it('the capabilities that a container adds and drops are kept apart', () => {
  expect(securityOf({ own: { capabilities: { add: ['NET_ADMIN'] } } })).toStrictEqual({
    ...PLAIN,
    addCapabilities: ['NET_ADMIN'],
  });
  expect(securityOf({ own: { capabilities: { drop: ['ALL'] } } })).toStrictEqual({
    ...PLAIN,
    dropCapabilities: ['ALL'],
  });
});

const groups: [string, PodSecurityContext, number[] | undefined][] = [
  ['only supplementalGroups', { supplementalGroups: [4, 2] }, [4, 2]],
  ['only fsGroup', { fsGroup: 3 }, [3]],
  ['fsGroup 0', { fsGroup: 0 }, [0]],
  ['supplementalGroups and fsGroup', { supplementalGroups: [4], fsGroup: 3 }, [4, 3]],
  ['an empty list of supplementalGroups', { supplementalGroups: [] }, undefined],
];
it.each(groups)('a Pod with %s has the supplemental groups %j', (_what, shared, supplementalGroups) => {
  expect(securityOf({ shared })).toStrictEqual({
    ...PLAIN,
    ...(supplementalGroups === undefined ? {} : { supplementalGroups }),
  });
});

it.each(['Merge', 'Strict'] as const)('the policy %s for supplemental groups applies to all containers', (policy) => {
  const shared: PodSecurityContext = { supplementalGroupsPolicy: policy };
  expect(groupsPolicy(podOf({ securityContext: shared }))).toEqual({ supplementalGroupsPolicy: policy });
  expect(securityOf({ shared })).toStrictEqual({ ...PLAIN, supplementalGroupsPolicy: policy });
});

it('a missing or unknown policy for supplemental groups is omitted', () => {
  expect(groupsPolicy(podOf())).toStrictEqual({});
  expect(groupsPolicy(podOf({ securityContext: { supplementalGroupsPolicy: 'Other' } }))).toStrictEqual({});
});

it.each([
  ['RuntimeDefault', { type: 'RuntimeDefault' }],
  ['Unconfined', { type: 'Unconfined' }],
  ['Localhost', { type: 'Localhost', localhostRef: '/profiles' }],
])('a profile of type %s without a localhostProfile has a reference only if the type is Localhost', (type, seccomp) => {
  expect(securityOf({ own: { seccompProfile: { type } } }).seccomp).toStrictEqual(seccomp);
});

const users: [string | undefined, object][] = [
  [undefined, { runAsUser: 0 }],
  ['', { runAsUser: 0 }],
  [':5', { runAsUser: 0 }],
  ['0', { runAsUser: 0 }],
  ['1000', { runAsUser: 1000 }],
  ['1000:5', { runAsUser: 1000 }],
  ['web', { runAsUserName: 'web' }],
  ['web:5', { runAsUserName: 'web' }],
  ['5web', { runAsUserName: '5web' }],
  ['web5', { runAsUserName: 'web5' }],
];
it.each(users)(
  'the user %j of an image becomes an explicit setting unless the spec has runAsUser',
  (user, expected) => {
    const { runAsUser: _, ...plain } = PLAIN;
    expect(securityOf({ user })).toStrictEqual({ ...plain, ...expected });
    expect(securityOf({ user, shared: { runAsUser: 7 } })).toStrictEqual({ ...plain, runAsUser: 7 });
  },
);

describe('runAsNonRoot', () => {
  const about = '(pod: "web_default(u1)", container: app)';
  const BREAKS = `container's runAsUser breaks non-root policy ${about}`;
  const ROOT = `container has runAsNonRoot and image will run as root ${about}`;
  const NAMED = `container has runAsNonRoot and image has non-numeric user (web), cannot verify user is non-root ${about}`;
  const NON_ROOT = { runAsNonRoot: true };
  const accepted: [string, Given][] = [
    ['an image with the user 10', { own: NON_ROOT, user: '10' }],
    ['an image with a user name, if the container has runAsUser', { own: { ...NON_ROOT, runAsUser: 1 }, user: 'web' }],
    ['an image with the user 0, if the Pod has runAsUser', { own: NON_ROOT, shared: { runAsUser: 1 }, user: '0' }],
    ['an image without a user, if the container disables it', { own: { runAsNonRoot: false }, shared: NON_ROOT }],
  ];
  it.each(accepted)('runAsNonRoot accepts %s', (_what, given) => {
    expect(() => securityOf(given)).not.toThrow();
  });

  const rejected: [string, Given, string][] = [
    ['an image without a user', { own: NON_ROOT }, ROOT],
    ['an image without a user, if only the Pod sets it', { shared: NON_ROOT }, ROOT],
    ['an image without a user, if only the Pod disables it', { own: NON_ROOT, shared: { runAsNonRoot: false } }, ROOT],
    ['an image with a group but no user', { own: NON_ROOT, user: ':5' }, ROOT],
    ['an image with the user 0', { own: NON_ROOT, user: '0:5' }, ROOT],
    ['an image with the user 00', { own: NON_ROOT, user: '00' }, ROOT],
    ['an image with a user name', { own: NON_ROOT, user: 'web:5' }, NAMED],
    ['runAsUser 0 of the container', { own: { ...NON_ROOT, runAsUser: 0 }, user: '5' }, BREAKS],
    ['runAsUser 0 of the Pod', { shared: { ...NON_ROOT, runAsUser: 0 }, user: '5' }, BREAKS],
  ];
  it.each(rejected)('runAsNonRoot rejects %s', (_what, given, message) => {
    expect(() => securityOf(given)).toThrow(new ContainerConfigError(message));
  });
});
