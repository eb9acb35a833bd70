import { describe, expect, it } from 'vitest';
import { fieldErrorText } from '../../../../../machinery/field-error.ts';
import type { PodSecurityContext, PodSpec, SecurityContext } from '../../../../generated/types.ts';
import { validatePodSecurityContext, validateSecurityContext } from './validate-security.ts';

const ID = 'must be between 0 and 2147483647, inclusive';
const beginning = (path: string, texts: readonly string[]) => texts.map((text) => expect.stringContaining(path + text));

describe('the security context of a container', () => {
  const errorsOf = (context: SecurityContext | undefined, hostUsers = true): string[] =>
    validateSecurityContext(context, hostUsers, 'c').map(fieldErrorText);

  it.each<[string, SecurityContext | undefined, ...string[]]>([
    ['no security context', undefined],
    ['the lowest and highest IDs', { runAsUser: 0, runAsGroup: 2_147_483_647 }],
    ['a negative user', { runAsUser: -1 }, `.runAsUser: Invalid value: -1: ${ID}`],
    ['a group that is too high', { runAsGroup: 2_147_483_648 }, `.runAsGroup: Invalid value: 2147483648: ${ID}`],
    [
      'an unknown procMount',
      { procMount: 'x' },
      '.procMount: Unsupported value: "x": supported values: "Default", "Unmasked"',
    ],
    [
      'procMount Unmasked',
      { procMount: 'Unmasked' },
      '.procMount: Invalid value: "Unmasked": `hostUsers` must be false to use `Unmasked`',
    ],
    ['privileges', { privileged: true, allowPrivilegeEscalation: true }],
    ['neither privileges nor their escalation', { privileged: false, allowPrivilegeEscalation: false }],
    [
      'privileges without their escalation',
      { privileged: true, allowPrivilegeEscalation: false },
      ': Invalid value: {"privileged":true,"allowPrivilegeEscalation":false}: cannot set `allowPrivilegeEscalation` to false and `privileged` to true',
    ],
    ['CAP_SYS_ADMIN', { capabilities: { add: ['CAP_SYS_ADMIN'] } }],
    ['another capability without escalation', { capabilities: { add: ['CAP_KILL'] }, allowPrivilegeEscalation: false }],
    [
      'CAP_SYS_ADMIN without escalation',
      { capabilities: { add: ['CAP_SYS_ADMIN'] }, allowPrivilegeEscalation: false },
      ': Invalid value: {"capabilities":{"add":["CAP_SYS_ADMIN"]},"allowPrivilegeEscalation":false}: cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN',
    ],
  ])('the errors of %s are reported', (_, context, ...errors) => {
    expect(errorsOf(context)).toEqual(beginning('c', errors));
  });

  it('procMount Unmasked is accepted in a user namespace', () => {
    expect(errorsOf({ procMount: 'Unmasked' }, false)).toEqual([]);
  });
});

describe('the security context of a Pod', () => {
  const errorsOf = (context: PodSecurityContext | undefined, spec: Partial<PodSpec> = {}): string[] =>
    validatePodSecurityContext({ containers: [], ...spec, ...(context && { securityContext: context }) }, 'p').map(
      fieldErrorText,
    );

  it.each<[string, PodSecurityContext | undefined, ...string[]]>([
    ['no security context', undefined],
    ['a negative fsGroup', { fsGroup: -1 }, `.fsGroup: Invalid value: -1: ${ID}`],
    ['a negative user', { runAsUser: -1 }, `.runAsUser: Invalid value: -1: ${ID}`],
    ['a negative group', { runAsGroup: -1 }, `.runAsGroup: Invalid value: -1: ${ID}`],
    [
      'a negative supplemental group',
      { supplementalGroups: [1, -1] },
      `.supplementalGroups[1]: Invalid value: -1: ${ID}`,
    ],
    [
      'an unknown fsGroupChangePolicy',
      { fsGroupChangePolicy: 'x' },
      '.fsGroupChangePolicy: Unsupported value: "x": supported values: "Always", "OnRootMismatch"',
    ],
    [
      'an unknown supplementalGroupsPolicy',
      { supplementalGroupsPolicy: 'x' },
      '.supplementalGroupsPolicy: Unsupported value: "x": supported values: "Merge", "Strict"',
    ],
    [
      'an unknown seLinuxChangePolicy',
      { seLinuxChangePolicy: 'x' },
      '.seLinuxChangePolicy: Unsupported value: "x": supported values: "MountOption", "Recursive"',
    ],
    [
      'valid policies',
      { fsGroupChangePolicy: 'Always', supplementalGroupsPolicy: 'Merge', seLinuxChangePolicy: 'Recursive' },
    ],
  ])('the errors of %s are reported', (_, context, ...errors) => {
    expect(errorsOf(context)).toEqual(beginning('p', errors));
  });

  it.each([
    ['is rejected', { shareProcessNamespace: true, hostPID: true }, 1],
    ['is accepted without the host PID namespace', { shareProcessNamespace: true }, 0],
    ['is not needed with the host PID namespace', { hostPID: true }, 0],
  ])('a shared process namespace %s', (_, spec, count) => {
    expect(errorsOf({}, spec)).toEqual(
      Array(count).fill(
        'p.shareProcessNamespace: Invalid value: true: ShareProcessNamespace and HostPID cannot both be enabled',
      ),
    );
  });

  const sysctls = (...names: string[]) => ({ sysctls: names.map((name) => ({ name, value: '1' })) });
  const PATTERN = 'must have at most 253 characters and match regex';
  it.each<[string, PodSecurityContext, Partial<PodSpec>, ...string[]]>([
    ['names with dots and with slashes', sysctls('kernel.shm_rmid_forced', 'net/core/somaxconn'), {}],
    ['an empty name', sysctls(''), {}, '[0].name: Required value'],
    ['a name of 253 characters', sysctls('a'.repeat(253)), {}],
    [
      'a name of 254 characters',
      sysctls('a'.repeat(254)),
      {},
      `[0].name: Invalid value: "${'a'.repeat(254)}": ${PATTERN}`,
    ],
    ['a name with a space', sysctls('a b'), {}, `[0].name: Invalid value: "a b": ${PATTERN}`],
    ['a repeated name', sysctls('a', 'b', 'a'), {}, '[2].name: Duplicate value: "a"'],
    [
      'a network sysctl in the host network',
      sysctls('net/core/somaxconn'),
      { hostNetwork: true },
      `[0].name: Invalid value: "net/core/somaxconn": may not be specified when 'hostNetwork' is true`,
    ],
    ['a network sysctl with host IPC', sysctls('net.core.somaxconn'), { hostIPC: true }],
    [
      'an IPC sysctl with host IPC',
      sysctls('kernel.msgmax'),
      { hostIPC: true },
      `[0].name: Invalid value: "kernel.msgmax": may not be specified when 'hostIPC' is true`,
    ],
    [
      'kernel.sem with host IPC',
      sysctls('kernel.sem'),
      { hostIPC: true },
      `[0].name: Invalid value: "kernel.sem": may not be specified when 'hostIPC' is true`,
    ],
    ['an IPC sysctl in the host network', sysctls('fs.mqueue.msg_max'), { hostNetwork: true }],
    ['another kernel sysctl with host IPC', sysctls('kernel.semaphores'), { hostIPC: true }],
  ])('the errors of sysctls with %s are reported', (_, context, spec, ...errors) => {
    expect(errorsOf(context, spec)).toEqual(beginning('p.sysctls', errors));
  });
});

describe('the seccomp profile', () => {
  const errorsOf = (seccompProfile: object): string[] =>
    validateSecurityContext({ seccompProfile } as SecurityContext, true, 'c').map(fieldErrorText);

  it.each<[string, object, ...string[]]>([
    ['RuntimeDefault', { type: 'RuntimeDefault' }],
    ['Localhost with a file', { type: 'Localhost', localhostProfile: 'a/b.json' }],
    ['no type', {}, '.type: Required value: type is required when seccompProfile is set'],
    ['an unknown type', { type: 'x' }, '.type: Unsupported value: "x": supported values: '],
    [
      'Localhost without a file',
      { type: 'Localhost' },
      '.localhostProfile: Required value: must be set when seccomp type is Localhost',
    ],
    [
      'Localhost with a file outside of the folder',
      { type: 'Localhost', localhostProfile: '../a' },
      `.localhostProfile: Invalid value: "../a": must not contain '..'`,
    ],
    [
      'Localhost with an absolute path',
      { type: 'Localhost', localhostProfile: '/a' },
      '.localhostProfile: Invalid value: "/a": must be a relative path',
    ],
    ['a file without Localhost', { type: 'Unconfined', localhostProfile: 'a' }, '.localhostProfile: Invalid value: '],
  ])('the errors of a profile with %s are reported', (_, profile, ...errors) => {
    expect(errorsOf(profile)).toEqual(beginning('c.seccompProfile', errors));
  });
});
