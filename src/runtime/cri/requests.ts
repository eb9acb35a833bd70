/**
 * Converts the node's configurations to CRI's messages. The messages list the masked and the read-only paths of each container, because CRI
 * has no defaults for these paths.
 */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { ContainerConfig, SandboxConfig } from '../runtime.ts';
import { containerLabels, type Labels, podLabels, withImageName } from './labels.ts';

const CPUS = '/sys/devices/system/cpu';

/** The kernel counts in these folders how often each CPU was throttled. Not all machines have them. */
function thermalThrottles(): string[] {
  const cpus = existsSync(CPUS) ? readdirSync(CPUS).filter((name) => /^cpu\d+$/.test(name)) : [];
  return cpus.map((name) => join(CPUS, name, 'thermal_throttle')).filter((path) => existsSync(path));
}

/** The paths that the runtime hides from unprivileged containers, unless procMount is Unmasked. Source: v1.33 pkg/securitycontext. */
const MASKED_PATHS = [
  '/proc/asound',
  '/proc/acpi',
  '/proc/interrupts',
  '/proc/kcore',
  '/proc/keys',
  '/proc/latency_stats',
  '/proc/timer_list',
  '/proc/timer_stats',
  '/proc/sched_debug',
  '/proc/scsi',
  '/sys/firmware',
  '/sys/devices/virtual/powercap',
  ...thermalThrottles(),
];
const READONLY_PATHS = ['/proc/bus', '/proc/fs', '/proc/irq', '/proc/sys', '/proc/sysrq-trigger'];

const MOUNT_PROPAGATION = {
  None: 'PROPAGATION_PRIVATE',
  HostToContainer: 'PROPAGATION_HOST_TO_CONTAINER',
  Bidirectional: 'PROPAGATION_BIDIRECTIONAL',
} as const;

const namespaceOptions = (config: SandboxConfig): object => ({
  network: config.hostNetwork === true ? 'NODE' : 'POD',
  pid: config.hostPid === true ? 'NODE' : config.shareProcessNamespace === true ? 'POD' : 'CONTAINER',
  ipc: config.hostIpc === true ? 'NODE' : 'POD',
});

/** Returns CRI's PodSandboxConfig. `scope`: the labels of this lifepod instance. They and podLabels() override the Pod's own labels. */
export function sandboxMessage(config: SandboxConfig, scope: Labels, privileged = config.privileged ?? false): object {
  return {
    metadata: {
      name: config.pod.name,
      uid: config.pod.uid,
      namespace: config.pod.namespace,
      attempt: config.attempt,
    },
    hostname: config.hostname,
    logDirectory: config.logDirectory,
    dnsConfig: config.dns,
    portMappings: config.portMappings,
    labels: { ...config.labels, ...podLabels(config.pod, config.attempt), ...scope },
    annotations: config.annotations,
    linux: {
      cgroupParent: config.cgroupParent ?? '',
      sysctls: config.sysctls,
      securityContext: {
        namespaceOptions: namespaceOptions(config),
        privileged,
        seccomp: { profileType: 'RuntimeDefault' },
        selinuxOptions: config.seLinux,
        supplementalGroupsPolicy: config.supplementalGroupsPolicy,
      },
    },
  };
}

export function containerMessage(config: ContainerConfig, sandbox: SandboxConfig, scope: Labels): object {
  return {
    metadata: { name: config.name, attempt: config.attempt },
    image: { image: config.imageId, userSpecifiedImage: config.imageName },
    command: config.command,
    args: config.args,
    workingDir: config.workingDir ?? '',
    envs: config.env.map(({ name, value }) => ({ key: name, value })),
    mounts: config.mounts.map((mount) => ({
      hostPath: mount.hostPath,
      containerPath: mount.containerPath,
      readonly: mount.readOnly ?? false,
      recursiveReadOnly: mount.recursiveReadOnly ?? false,
      selinuxRelabel: mount.relabel ?? false,
      propagation: MOUNT_PROPAGATION[mount.propagation ?? 'None'],
    })),
    labels: { ...containerLabels(config.pod, config.name, config.kind, config.attempt), ...scope },
    annotations: withImageName(config.annotations, config.imageName),
    logPath: config.logPath,
    stdin: config.stdin ?? false,
    stdinOnce: config.stdinOnce ?? false,
    tty: config.tty ?? false,
    linux: {
      resources: {
        cpuPeriod: config.resources.cpuPeriod,
        cpuQuota: config.resources.cpuQuota,
        cpuShares: config.resources.cpuShares,
        memoryLimitInBytes: config.resources.memoryLimitBytes,
        memorySwapLimitInBytes: config.resources.memorySwapLimitBytes,
        oomScoreAdj: config.resources.oomScoreAdj,
        hugepageLimits: Object.entries(config.resources.hugepageBytes ?? {}).map(([pageSize, limit]) => ({
          pageSize,
          limit,
        })),
        unified: config.resources.unified,
      },
      securityContext: securityMessage(config.security, sandbox, config.targetContainerId),
    },
  };
}

function securityMessage(security: ContainerConfig['security'], sandbox: SandboxConfig, targetId?: string): object {
  const unmasked = security.procMount === 'Unmasked';
  return {
    capabilities: {
      addCapabilities: security.addCapabilities,
      dropCapabilities: security.dropCapabilities,
    },
    privileged: security.privileged ?? false,
    namespaceOptions: {
      ...namespaceOptions(sandbox),
      ...(targetId === undefined ? {} : { pid: 'TARGET', targetId }),
    },
    runAsUser: int64(security.runAsUser),
    runAsGroup: int64(security.runAsGroup),
    runAsUsername: security.runAsUserName ?? '',
    readonlyRootfs: security.readOnlyRootFilesystem ?? false,
    supplementalGroups: security.supplementalGroups,
    noNewPrivs: security.noNewPrivileges ?? false,
    maskedPaths: unmasked ? [] : MASKED_PATHS,
    readonlyPaths: unmasked ? [] : READONLY_PATHS,
    seccomp: profile(security.seccomp),
    apparmor: profile(security.apparmor),
    selinuxOptions: security.seLinux,
    supplementalGroupsPolicy: security.supplementalGroupsPolicy,
  };
}

const int64 = (value: number | undefined): object | undefined => (value === undefined ? undefined : { value });

const profile = (
  value: { type: 'RuntimeDefault' | 'Unconfined' | 'Localhost'; localhostRef?: string } | undefined,
): object | undefined =>
  value === undefined ? undefined : { profileType: value.type, localhostRef: value.localhostRef ?? '' };
