/**
 * The functions are pure.
 * Invariant: mounted paths are in the Pod's folder or belong to the Pod's volumes.
 */

import { join } from 'node:path';
import { containersOf, isSidecar, namedPorts } from '../../api/core/v1/pod/containers.ts';
import type { Container, ContainerPort, EphemeralContainer, Pod, VolumeMount } from '../../api/generated/types.ts';
import { uidOf } from '../../machinery/meta.ts';
import type {
  ContainerConfig,
  ContainerKind,
  ImageInfo,
  PodIdentity,
  RuntimeFeatures,
  SandboxConfig,
} from '../../runtime/runtime.ts';
import { dottedSysctl } from '../../scheduling/sysctls.ts';
import type { CgroupFacts } from '../node-facts.ts';
import { containerResources } from '../resources/container-resources.ts';
import { volumesByName } from './by-name.ts';
import { ContainerConfigError } from './container-config-error.ts';
import { containerSecurity, groupsPolicy } from './container-security.ts';
import { type DnsFacts, podDnsConfig } from './dns-config.ts';
import { podAddresses } from './downward.ts';
import { containerEnvironment, type EnvironmentFacts } from './environment-variables.ts';
import { expandAll, expandStrict } from './expand.ts';
import { sandboxMetadata } from './sandbox-metadata.ts';

export interface PodEnvironment extends EnvironmentFacts {
  dns: DnsFacts;
  /** <data-dir>/pods/<uid>. */
  podDirectory: string;
  logsRoot: string;
  /** The folder of Localhost seccomp profiles. */
  seccompRoot: string;
  memoryCapacityBytes: number;
  volumePath(volumeName: string): string;
  /** Absent: the runtime chooses the control groups. */
  cgroupParent?: string;
  /** Absent if unknown. */
  cgroups?: CgroupFacts;
  /**
   * The handler of the Pod's RuntimeClass; absent if the Pod has none. For a container, only set if the container's mounts depend on the
   * handler.
   */
  runtimeHandler?: string;
  /** Absent if the runtime does not report its features. */
  runtimeFeatures?: RuntimeFeatures;
  seLinux?: boolean;
}

/** Holds ContainerState.backoffSeconds. */
export const BACKOFF_ANNOTATION = 'lifepod/backoff-seconds';

const HOSTNAME_MAX_LENGTH = 63;

export const podIdentity = (pod: Pod): PodIdentity => ({
  uid: uidOf(pod),
  namespace: pod.metadata.namespace ?? '',
  name: pod.metadata.name,
});

/** Returns the Pod's hostname, at most 63 characters, and the domain of its FQDN, which is '' for a Pod without a subdomain. */
export function podHostname(pod: Pod, clusterDomain: string): { hostname: string; domain: string } {
  const wanted = pod.spec?.hostname !== undefined && pod.spec.hostname !== '' ? pod.spec.hostname : pod.metadata.name;
  const hostname =
    wanted.length > HOSTNAME_MAX_LENGTH ? wanted.slice(0, HOSTNAME_MAX_LENGTH).replace(/[-.]+$/, '') : wanted;
  const subdomain = pod.spec?.subdomain ?? '';
  return {
    hostname,
    domain: subdomain === '' ? '' : `${subdomain}.${pod.metadata.namespace}.svc.${clusterDomain}`,
  };
}

function sandboxHostname(pod: Pod, clusterDomain: string): string {
  const { hostname, domain } = podHostname(pod, clusterDomain);
  if (pod.spec?.setHostnameAsFQDN !== true || domain === '') return hostname;
  const full = `${hostname}.${domain}`;
  if (full.length > 64) {
    throw new ContainerConfigError(
      `failed to construct FQDN from pod hostname and cluster domain, FQDN ${full} is too long (64 characters is the max, ${full.length} characters requested)`,
    );
  }
  return full;
}

export const podLogDirectory = (pod: Pod, logsRoot: string): string =>
  join(logsRoot, `${pod.metadata.namespace}_${pod.metadata.name}_${pod.metadata.uid}`);

/** Returns the path of the attempt's log, relative to the Pod's log folder. */
export const containerLogPath = (containerName: string, attempt: number): string =>
  join(containerName, `${attempt}.log`);

/** Returns the file that is mounted at the container's terminationMessagePath for this attempt. */
export const terminationMessageFile = (podDirectory: string, containerName: string, attempt: number): string =>
  join(terminationMessagesFolder(podDirectory), containerName, String(attempt));

export const terminationMessagesFolder = (podDirectory: string): string => join(podDirectory, 'containers');

export const etcHostsFile = (podDirectory: string): string => join(podDirectory, 'etc-hosts');

/** prepareContainer() mounts a subPath here. Links that the Pod creates later cannot redirect this mount. */
export const subPathMount = (podDirectory: string, volume: string, container: string, index: number): string =>
  join(podDirectory, 'volume-subpaths', volume, container, String(index));

export function sandboxConfig(pod: Pod, attempt: number, env: PodEnvironment): SandboxConfig {
  const spec = pod.spec;
  const hostNetwork = spec?.hostNetwork === true;
  if (spec?.hostUsers === false)
    throw new ContainerConfigError(
      `RuntimeClass handler ${JSON.stringify(env.runtimeHandler ?? '')} does not support user namespaces`,
    );
  const privileged = containersOf(pod).some(({ securityContext }) => securityContext?.privileged === true);
  const sysctls = spec?.securityContext?.sysctls ?? [];
  return {
    pod: podIdentity(pod),
    attempt,
    hostname: hostNetwork ? '' : sandboxHostname(pod, env.dns.clusterDomain),
    logDirectory: podLogDirectory(pod, env.logsRoot),
    ...sandboxMetadata(pod).shown,
    allLabels: pod.metadata.labels ?? {},
    namedPorts: namedPorts(pod),
    dns: podDnsConfig(pod, env.dns).config,
    portMappings: hostNetwork ? [] : portMappings(pod),
    cgroupParent: env.cgroupParent,
    runtimeHandler: env.runtimeHandler,
    ...(privileged ? { privileged } : {}),
    seLinux: spec?.securityContext?.seLinuxOptions,
    ...groupsPolicy(pod),
    ...(hostNetwork ? { hostNetwork } : {}),
    ...(spec?.hostPID === true ? { hostPid: true } : {}),
    ...(spec?.hostIPC === true ? { hostIpc: true } : {}),
    ...(spec?.shareProcessNamespace === true ? { shareProcessNamespace: true } : {}),
    ...(sysctls.length === 0
      ? {}
      : { sysctls: Object.fromEntries(sysctls.map(({ name, value }) => [dottedSysctl(name), value])) }),
  };
}

function portMappings(pod: Pod): NonNullable<SandboxConfig['portMappings']> {
  // Init containers have no port mappings, except for sidecars, which keep running next to the app containers.
  const containers = [
    ...(pod.spec?.initContainers ?? []).filter(isSidecar),
    ...(pod.spec?.containers ?? []),
    ...(pod.spec?.deferContainers ?? []),
  ];
  const ports = containers.flatMap((container) => container.ports ?? []).filter(({ hostPort }) => (hostPort ?? 0) > 0);
  // Containers that do not run at the same time may have the same host port. The mapping of the first such container is used.
  const key = ({ protocol, hostPort, hostIP }: ContainerPort): string => `${protocol}/${hostIP}/${hostPort}`;
  return [...new Map(ports.reverse().map((port) => [key(port), port])).values()]
    .reverse()
    .map(({ protocol, containerPort, hostPort, hostIP }) => ({
      protocol: (protocol ?? 'TCP') as 'TCP' | 'UDP' | 'SCTP',
      containerPort,
      hostPort: hostPort as number,
      ...(hostIP === undefined || hostIP === '' ? {} : { hostIp: hostIP }),
    }));
}

/** Throws a ContainerConfigError if the container cannot currently be configured; a retry may succeed. */
export function containerConfig(
  pod: Pod,
  container: Container | EphemeralContainer,
  kind: ContainerKind,
  attempt: number,
  backoffSeconds: number,
  image: ImageInfo,
  env: PodEnvironment,
): ContainerConfig {
  const variables = containerEnvironment(pod, container, env);
  const lookup = (name: string): string | undefined => variables.get(name);
  const [command, args] = [container.command, container.args].map((words) => words && expandAll(words, lookup));
  return {
    pod: podIdentity(pod),
    name: container.name,
    kind,
    attempt,
    imageId: image.id,
    imageName: container.image ?? '',
    command,
    args,
    workingDir: container.workingDir === '' ? undefined : container.workingDir,
    env: [...variables].map(([name, value]) => ({ name, value })),
    mounts: containerMounts(pod, container, attempt, lookup, env),
    logPath: containerLogPath(container.name, attempt),
    ...(container.stdin === true ? { stdin: true } : {}),
    ...(container.stdinOnce === true ? { stdinOnce: true } : {}),
    ...(container.tty === true ? { tty: true } : {}),
    annotations: { [BACKOFF_ANNOTATION]: String(backoffSeconds) },
    resources: containerResources(pod, container, env.memoryCapacityBytes, env.cgroups),
    security: containerSecurity(pod, container, image, env.seccompRoot),
  };
}

type Mount = ContainerConfig['mounts'][number];

function containerMounts(
  pod: Pod,
  container: Container | EphemeralContainer,
  attempt: number,
  lookup: (name: string) => string | undefined,
  env: PodEnvironment,
): Mount[] {
  const relabel = env.seLinux ? { relabel: true } : {};
  const volumes = volumesByName(pod);
  const mounts = (container.volumeMounts ?? []).map((mount, index): Mount => {
    const volume = volumes.get(mount.name);
    if (volume === undefined) {
      throw new ContainerConfigError(
        `cannot find volume ${JSON.stringify(mount.name)} to mount into container ${JSON.stringify(container.name)}`,
      );
    }
    const { configMap, secret, projected, downwardAPI, image, persistentVolumeClaim } = volume;
    const isOfApi = [configMap, secret, projected, downwardAPI].some((source) => source !== undefined);
    const isReadOnly = isOfApi || image !== undefined || persistentVolumeClaim?.readOnly === true;
    const subPath = mountSubPath(mount, container.name, lookup);
    return {
      hostPath:
        subPath === '' ? env.volumePath(mount.name) : subPathMount(env.podDirectory, mount.name, container.name, index),
      containerPath: mount.mountPath.startsWith('/') ? mount.mountPath : `/${mount.mountPath}`,
      readOnly: mount.readOnly === true || isReadOnly,
      ...(isRecursiveReadOnly(mount, env) ? { recursiveReadOnly: true } : {}),
      // Relabel only the Pod's own files. Files of the node, such as those in hostPath volumes, keep their SELinux labels.
      ...(env.seLinux && (isOfApi || volume.emptyDir !== undefined) ? { relabel: true } : {}),
      propagation: (mount.mountPropagation ?? 'None') as NonNullable<Mount['propagation']>,
    };
  });
  if (podAddresses(pod, env).length > 0 && !mounts.some(({ containerPath }) => containerPath === '/etc/hosts')) {
    mounts.push({ hostPath: etcHostsFile(env.podDirectory), containerPath: '/etc/hosts', readOnly: false, ...relabel });
  }
  const messagePath = container.terminationMessagePath ?? '';
  if (messagePath !== '') {
    mounts.push({
      hostPath: terminationMessageFile(env.podDirectory, container.name, attempt),
      containerPath: messagePath,
      readOnly: false,
      ...relabel,
    });
  }
  return mounts;
}

function isRecursiveReadOnly({ name, recursiveReadOnly = 'Disabled' }: VolumeMount, env: PodEnvironment): boolean {
  if (recursiveReadOnly === 'Disabled') return false;
  const handler = env.runtimeFeatures?.handlers.find((each) => each.name === (env.runtimeHandler ?? ''));
  const supported = handler?.recursiveReadOnlyMounts ?? false;
  if (!supported && recursiveReadOnly === 'Enabled') {
    throw new ContainerConfigError(
      `failed to resolve recursive read-only mode: volume ${JSON.stringify(name)} requested recursive read-only mode, but it is not supported by the runtime`,
    );
  }
  return supported;
}

/** PATH_MAX on Linux. */
const MAX_PATH_LENGTH = 4096;
/** An expression may be longer than its path, because a reference such as $(A_LONG_NAME) may be longer than its value. */
const MAX_EXPRESSION_LENGTH = 16 * MAX_PATH_LENGTH;

/**
 * Returns the mount's path inside the volume; '' for the volume itself. Throws a ContainerConfigError if the path is invalid or too long,
 * or if subPathExpr refers to a variable that is unset or empty.
 */
export function mountSubPath(
  { name, subPath = '', subPathExpr = '' }: VolumeMount,
  container: string,
  lookup: (name: string) => string | undefined,
): string {
  // This is upstream's text, although it does not mention that the path is too long.
  const tooLong = (): Error =>
    new ContainerConfigError(
      `failed to prepare subPath for volumeMount ${JSON.stringify(name)} of container ${JSON.stringify(container)}`,
    );
  if (subPathExpr.length > MAX_EXPRESSION_LENGTH) throw tooLong();
  let path = subPath;
  if (subPathExpr !== '') {
    try {
      path = expandStrict(subPathExpr, lookup);
    } catch (error) {
      throw new ContainerConfigError((error as Error).message);
    }
  }
  if (path.length > MAX_PATH_LENGTH) throw tooLong();
  if (path.startsWith('/')) throw new ContainerConfigError(`error SubPath \`${path}\` must not be an absolute path`);
  if (path.split('/').includes('..'))
    throw new ContainerConfigError(`unable to provision SubPath \`${path}\`: must not contain '..'`);
  return path
    .split('/')
    .filter((part) => part !== '' && part !== '.')
    .join('/');
}
