/** The configurations that the node passes to a runtime for a sandbox and for a container. */

export type ContainerKind = 'init' | 'app' | 'defer' | 'ephemeral';

export interface PodIdentity {
  uid: string;
  namespace: string;
  name: string;
}

export interface SandboxConfig {
  pod: PodIdentity;
  attempt: number;
  hostname: string;
  /** Folder into which the runtime writes container logs (CRI log format). */
  logDirectory: string;
  labels: Record<string, string>;
  annotations: Record<string, string>;
  dns?: { servers: string[]; searches: string[]; options: string[] };
  portMappings?: { protocol: 'TCP' | 'UDP' | 'SCTP'; containerPort: number; hostPort: number; hostIp?: string }[];
  cgroupParent?: string;
  hostNetwork?: boolean;
  hostPid?: boolean;
  hostIpc?: boolean;
  shareProcessNamespace?: boolean;
  /** A container of the Pod is privileged; CRI needs to know this when the sandbox is created. */
  privileged?: boolean;
  sysctls?: Record<string, string>;
  seLinux?: SeLinuxOptions;
  supplementalGroupsPolicy?: SupplementalGroupsPolicy;
  /** The runtime's name for the handler that runs the Pod; absent: its default. */
  runtimeHandler?: string;
}

export interface ContainerConfig {
  pod: PodIdentity;
  name: string;
  kind: ContainerKind;
  /** restartCount of this run: 0, 1, … */
  attempt: number;
  /** As resolved by imageStatus: an image ID or reference that is present. */
  imageId: string;
  /** The reference as written in the Pod's spec. */
  imageName: string;
  command?: string[];
  args?: string[];
  workingDir?: string;
  env: { name: string; value: string }[];
  mounts: {
    hostPath: string;
    containerPath: string;
    readOnly?: boolean;
    /** Also applies to the mounts below it. */
    recursiveReadOnly?: boolean;
    /** Gives its files the container's SELinux label. */
    relabel?: boolean;
    propagation?: 'None' | 'HostToContainer' | 'Bidirectional';
  }[];
  /** Relative to the sandbox's logDirectory, e.g. `app/0.log`. */
  logPath: string;
  stdin?: boolean;
  stdinOnce?: boolean;
  tty?: boolean;
  /** Shares the process namespace of this container of the same sandbox. */
  targetContainerId?: string;
  /** Annotations that observations return. */
  annotations: Record<string, string>;
  resources: {
    cpuPeriod?: number;
    cpuQuota?: number;
    cpuShares?: number;
    memoryLimitBytes?: number;
    /** Limit of memory and swap together. */
    memorySwapLimitBytes?: number;
    oomScoreAdj?: number;
    /** By page size in the kernel's notation: 2MB, 1GB. */
    hugepageBytes?: Record<string, number>;
    /** Files of a control group of version 2, and the values to write to them. */
    unified?: Record<string, string>;
  };
  security: {
    privileged?: boolean;
    runAsUser?: number;
    runAsGroup?: number;
    runAsUserName?: string;
    supplementalGroups?: number[];
    readOnlyRootFilesystem?: boolean;
    noNewPrivileges?: boolean;
    addCapabilities?: string[];
    dropCapabilities?: string[];
    seccomp?: { type: 'RuntimeDefault' | 'Unconfined' | 'Localhost'; localhostRef?: string };
    apparmor?: { type: 'RuntimeDefault' | 'Unconfined' | 'Localhost'; localhostRef?: string };
    procMount?: 'Default' | 'Unmasked';
    seLinux?: SeLinuxOptions;
    supplementalGroupsPolicy?: SupplementalGroupsPolicy;
  };
}

export interface SeLinuxOptions {
  user?: string;
  role?: string;
  type?: string;
  level?: string;
}

/** Merge: in addition to the groups of the image's user. */
export type SupplementalGroupsPolicy = 'Merge' | 'Strict';
