/** What a runtime is told of a sandbox and of a container. */

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
  /** Some container of the Pod is privileged; CRI wants to know when the sandbox is made. */
  privileged?: boolean;
  sysctls?: Record<string, string>;
  seLinux?: SeLinuxOptions;
  supplementalGroupsPolicy?: SupplementalGroupsPolicy;
  /** The runtime's name for what runs the Pod; absent: its default. */
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
  /** As the Pod's spec wrote it. */
  imageName: string;
  command?: string[];
  args?: string[];
  workingDir?: string;
  env: { name: string; value: string }[];
  mounts: {
    hostPath: string;
    containerPath: string;
    readOnly?: boolean;
    /** What is mounted below it, too. */
    recursiveReadOnly?: boolean;
    /** Its files get the container's SELinux label. */
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
  /** Extra labels and annotations that come back in observations. */
  annotations: Record<string, string>;
  resources: {
    cpuPeriod?: number;
    cpuQuota?: number;
    cpuShares?: number;
    memoryLimitBytes?: number;
    /** Of memory and swap together. */
    memorySwapLimitBytes?: number;
    oomScoreAdj?: number;
    /** By page size as the kernel writes it: 2MB, 1GB. */
    hugepageBytes?: Record<string, number>;
    /** Files of a control group of version 2, and what is written to them. */
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

/** Merge: with the groups that the image's user has. */
export type SupplementalGroupsPolicy = 'Merge' | 'Strict';
