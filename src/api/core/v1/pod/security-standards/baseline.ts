/**
 * The controls of the level baseline, which prevent known ways to escape from a container.
 * Source: k8s.io/pod-security-admission/policy of v1.33 (behavior and wording).
 */
import {
  type AnySecurityContext,
  type Check,
  type Control,
  forbidInContainers,
  forbidInContexts,
  plural,
  quoted,
  settersOf,
  violationBy,
} from './control.ts';

const DEFAULT_CAPABILITIES: ReadonlySet<string> = new Set([
  'AUDIT_WRITE',
  'CHOWN',
  'DAC_OVERRIDE',
  'FOWNER',
  'FSETID',
  'KILL',
  'MKNOD',
  'NET_BIND_SERVICE',
  'SETFCAP',
  'SETGID',
  'SETPCAP',
  'SETUID',
  'SYS_CHROOT',
]);

const PROFILE_TYPES: ReadonlySet<string> = new Set(['RuntimeDefault', 'Localhost']);

const SELINUX_TYPES = ['', 'container_t', 'container_init_t', 'container_kvm_t'];

const SYSCTLS = [
  'kernel.shm_rmid_forced',
  'net.ipv4.ip_local_port_range',
  'net.ipv4.tcp_syncookies',
  'net.ipv4.ping_group_range',
  'net.ipv4.ip_unprivileged_port_start',
];
const SYSCTLS_27 = [...SYSCTLS, 'net.ipv4.ip_local_reserved_ports'];
const SYSCTLS_29 = [
  ...SYSCTLS_27,
  'net.ipv4.tcp_keepalive_time',
  'net.ipv4.tcp_fin_timeout',
  'net.ipv4.tcp_keepalive_intvl',
  'net.ipv4.tcp_keepalive_probes',
];
const SYSCTLS_32 = [...SYSCTLS_29, 'net.ipv4.tcp_rmem', 'net.ipv4.tcp_wmem'];

const APP_ARMOR_PREFIX = 'container.apparmor.security.beta.kubernetes.io/';
export const SECCOMP_POD = 'seccomp.security.alpha.kubernetes.io/pod';
export const SECCOMP_PREFIX = 'container.seccomp.security.alpha.kubernetes.io/';

const annotationText = (key: string, value: string): string => `${key}=${JSON.stringify(value)}`;

const isAppArmorAnnotationAllowed = (value: string): boolean =>
  value === '' || value === 'runtime/default' || value.startsWith('localhost/');

/** Forbids AppArmor profiles that disable confinement. Annotations for containers that do not exist count, too. */
const appArmor: Check = (pod) => {
  const { who, values } = settersOf(pod, ({ appArmorProfile }) =>
    appArmorProfile === undefined || PROFILE_TYPES.has(appArmorProfile.type) ? [] : [appArmorProfile.type],
  );
  const annotations = Object.entries(pod.annotations)
    .filter(([key, value]) => key.startsWith(APP_ARMOR_PREFIX) && !isAppArmorAnnotationAllowed(value))
    .map(([key, value]) => annotationText(key, value))
    .sort();
  if (annotations.length > 0) who.push(plural(annotations.length, 'annotation', 'annotations'));
  const all = [...values, ...annotations];
  return violationBy(
    plural(all.length, 'forbidden AppArmor profile', 'forbidden AppArmor profiles'),
    all,
    `${who.join(' and ')} must not set AppArmor profile type to ${quoted(all)}`,
  );
};

const hostNamespaces: Check = ({ spec }) => {
  const shared = (['hostNetwork', 'hostPID', 'hostIPC'] as const)
    .filter((field) => spec[field])
    .map((field) => `${field}=true`);
  return violationBy('host namespaces', shared, shared.join(', '));
};

const hostPathVolumes: Check = ({ spec }) => {
  const names = (spec.volumes ?? []).filter(({ hostPath }) => hostPath !== undefined).map(({ name }) => name);
  return violationBy('hostPath volumes', names, `${plural(names.length, 'volume', 'volumes')} ${quoted(names)}`);
};

const seLinux = (types: readonly string[]): Check => {
  const forbiddenType = ({ seLinuxOptions: { type = '' } = {} }: AnySecurityContext): string[] =>
    types.includes(type) ? [] : [type];
  const identity = ({ seLinuxOptions }: AnySecurityContext): string[] =>
    (['user', 'role'] as const).filter((field) => seLinuxOptions?.[field]);
  return (pod) => {
    const { who } = settersOf(pod, (context) =>
      context.seLinuxOptions === undefined ? [] : [...forbiddenType(context), ...identity(context)],
    );
    if (who.length === 0) return undefined;
    const forbidden = settersOf(pod, forbiddenType).values;
    const set = settersOf(pod, identity).values;
    const faults = [
      ...(forbidden.length === 0 ? [] : [`${plural(forbidden.length, 'type', 'types')} ${quoted(forbidden)}`]),
      ...(set.includes('user') ? ['user may not be set'] : []),
      ...(set.includes('role') ? ['role may not be set'] : []),
    ];
    const detail = `${who.join(' and ')} set forbidden securityContext.seLinuxOptions: ${faults.join('; ')}`;
    return { reason: 'seLinuxOptions', detail };
  };
};

const isSeccompAnnotationAllowed = (value: string): boolean =>
  value === 'runtime/default' || value === 'docker/default' || value.startsWith('localhost/');

const seccompAnnotations: Check = ({ annotations, containers }) => {
  const forbidden = [SECCOMP_POD, ...containers.map(({ name }) => SECCOMP_PREFIX + name)]
    .filter((key) => annotations[key] !== undefined && !isSeccompAnnotationAllowed(annotations[key]))
    .map((key) => annotationText(key, annotations[key] ?? ''))
    .sort();
  const detail = `forbidden ${plural(forbidden.length, 'annotation', 'annotations')} ${forbidden.join(', ')}`;
  return violationBy('seccompProfile', forbidden, detail);
};

/** Forbids seccomp profiles that disable the filter. The level restricted also requires a profile. */
export const seccompProfiles = forbidInContexts(
  'seccompProfile',
  ({ seccompProfile }) =>
    seccompProfile === undefined || PROFILE_TYPES.has(seccompProfile.type) ? [] : [seccompProfile.type],
  (types) => `must not set securityContext.seccompProfile.type to ${quoted(types)}`,
);

const sysctls =
  (allowed: readonly string[]): Check =>
  ({ spec }) => {
    const names = (spec.securityContext?.sysctls ?? [])
      .map(({ name }) => name)
      .filter((name) => !allowed.includes(name));
    return violationBy('forbidden sysctls', names, names.join(', '));
  };

/** The controls are sorted by id. */
export const baselineControls: readonly Control[] = [
  { id: 'appArmorProfile', versions: [{ since: 0, check: appArmor }] },
  {
    id: 'capabilities_baseline',
    versions: [
      {
        since: 0,
        check: forbidInContainers(
          'non-default capabilities',
          ({ securityContext }) =>
            (securityContext?.capabilities?.add ?? []).filter((name) => !DEFAULT_CAPABILITIES.has(name)),
          (names) => `must not include ${quoted(names)} in securityContext.capabilities.add`,
        ),
      },
    ],
  },
  { id: 'hostNamespaces', versions: [{ since: 0, check: hostNamespaces }] },
  { id: 'hostPathVolumes', versions: [{ since: 0, check: hostPathVolumes }] },
  {
    id: 'hostPorts',
    versions: [
      {
        since: 0,
        check: forbidInContainers(
          'hostPort',
          ({ ports = [] }) => ports.flatMap(({ hostPort }) => (hostPort ? [`${hostPort}`] : [])),
          (ports, count) =>
            `${plural(count, 'uses', 'use')} ${plural(ports.length, 'hostPort', 'hostPorts')} ${ports.join(', ')}`,
        ),
      },
    ],
  },
  {
    id: 'privileged',
    versions: [
      {
        since: 0,
        check: forbidInContainers(
          'privileged',
          ({ securityContext }) => (securityContext?.privileged ? ['true'] : []),
          () => 'must not set securityContext.privileged=true',
        ),
      },
    ],
  },
  {
    id: 'procMount',
    versions: [
      {
        since: 0,
        check: forbidInContainers(
          'procMount',
          ({ securityContext: { procMount = 'Default' } = {} }) => (procMount === 'Default' ? [] : [procMount]),
          (types) => `must not set securityContext.procMount to ${quoted(types)}`,
        ),
      },
    ],
  },
  {
    id: 'seLinuxOptions',
    versions: [
      { since: 0, check: seLinux(SELINUX_TYPES) },
      { since: 31, check: seLinux([...SELINUX_TYPES, 'container_engine_t']) },
    ],
  },
  {
    id: 'seccompProfile_baseline',
    versions: [
      { since: 0, check: seccompAnnotations },
      { since: 19, check: seccompProfiles },
    ],
  },
  {
    id: 'sysctls',
    versions: [
      { since: 0, check: sysctls(SYSCTLS) },
      { since: 27, check: sysctls(SYSCTLS_27) },
      { since: 29, check: sysctls(SYSCTLS_29) },
      { since: 32, check: sysctls(SYSCTLS_32) },
    ],
  },
  {
    id: 'windowsHostProcess',
    versions: [
      {
        since: 0,
        check: forbidInContexts(
          'hostProcess',
          ({ windowsOptions }) => (windowsOptions?.hostProcess ? ['true'] : []),
          () => 'must not set securityContext.windowsOptions.hostProcess=true',
        ),
      },
    ],
  },
];
