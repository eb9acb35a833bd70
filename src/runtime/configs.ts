export type ContainerKind = 'init' | 'app' | 'defer' | 'ephemeral';

export interface PodIdentity {
  uid: string;
  namespace: string;
  name: string;
}

export interface SandboxConfig {
  pod: PodIdentity;
  /** The number of the sandbox among the sandboxes of the Pod: 0, 1, … */
  attempt: number;
  hostname: string;
  /** The folder to which the runtime writes the logs of the containers, in CRI's log format. */
  logDirectory: string;
  /** The labels of the Pod that the runtime stores with the sandbox. */
  labels: Record<string, string>;
  /** All labels of the Pod, for the Pod network. Absent: `labels` contains all labels of the Pod. */
  allLabels?: Record<string, string>;
  /** For the Pod network. */
  namedPorts?: { name?: string; protocol?: string; containerPort: number }[];
  annotations: Record<string, string>;
  dns?: { servers: string[]; searches: string[]; options: string[] };
  portMappings?: { protocol: 'TCP' | 'UDP' | 'SCTP'; containerPort: number; hostPort: number; hostIp?: string }[];
  cgroupParent?: string;
  hostNetwork?: boolean;
  hostPid?: boolean;
  hostIpc?: boolean;
  shareProcessNamespace?: boolean;
  /** Whether a container of the Pod is privileged. CRI requires this information when the sandbox is created. */
  privileged?: boolean;
  sysctls?: Record<string, string>;
  seLinux?: SeLinuxOptions;
  supplementalGroupsPolicy?: SupplementalGroupsPolicy;
  /** Absent: the runtime's default handler. */
  runtimeHandler?: string;
}

export interface ContainerConfig {
  pod: PodIdentity;
  name: string;
  kind: ContainerKind;
  /** The container's restartCount during this run: 0, 1, … */
  attempt: number;
  /** The ID or reference of an image that is present, such as the ID that imageStatus() returned. */
  imageId: string;
  /** The image reference as written in the Pod's spec. */
  imageName: string;
  command?: string[];
  args?: string[];
  workingDir?: string;
  env: { name: string; value: string }[];
  mounts: {
    hostPath: string;
    containerPath: string;
    readOnly?: boolean;
    /** Whether the mounts below this mount are also read-only. */
    recursiveReadOnly?: boolean;
    /** Whether the runtime gives the mounted files the container's SELinux label. */
    relabel?: boolean;
    propagation?: 'None' | 'HostToContainer' | 'Bidirectional';
  }[];
  /** Relative to the sandbox's logDirectory, such as `app/0.log`. */
  logPath: string;
  stdin?: boolean;
  stdinOnce?: boolean;
  tty?: boolean;
  /** The container in the same sandbox whose process namespace this container shares; absent: as configured for the sandbox. */
  targetContainerId?: string;
  /** The runtime stores these annotations and returns them in observations. */
  annotations: Record<string, string>;
  resources: {
    cpuPeriod?: number;
    cpuQuota?: number;
    cpuShares?: number;
    memoryLimitBytes?: number;
    /** The limit for the sum of memory and swap. */
    memorySwapLimitBytes?: number;
    oomScoreAdj?: number;
    /** Limits in bytes by page size, such as 2MB or 1GB, in the form of the names of the kernel's cgroup files. */
    hugepageBytes?: Record<string, number>;
    /** Values to write to the files of the container's cgroup, by file name. Set only with cgroup v2. */
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

/** Merge: the container also gets the groups that its user has in the image's /etc/group. Strict: it does not get them. */
export type SupplementalGroupsPolicy = 'Merge' | 'Strict';
