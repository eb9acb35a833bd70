/**
 * The container runtime as the node sees it: CRI's verbs, with lifepod's labels made into fields.
 * cri/ speaks to containerd (and any CRI v1 runtime); simulated/ runs in virtual time. test/contract holds both to one suite.
 *
 * Every call is idempotent by name: running a sandbox or creating a container whose (pod UID, name, attempt) exists returns
 * the existing ID; stopping or removing what is gone is success. Every call takes an AbortSignal.
 */
import type { StreamSelection } from '../machinery/node-connection.ts';
import type { Millis } from '../machinery/time.ts';

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
    oomScoreAdj?: number;
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
  };
}

export interface SandboxObservation {
  id: string;
  podUid: string;
  namespace: string;
  name: string;
  attempt: number;
  ready: boolean;
  createdAt: Millis;
  /** First the primary one; empty where there is none (yet, or host network). */
  ips: string[];
}

export interface ContainerObservation {
  id: string;
  sandboxId: string;
  podUid: string;
  name: string;
  kind: ContainerKind;
  attempt: number;
  state: 'created' | 'running' | 'exited' | 'unknown';
  createdAt: Millis;
  startedAt?: Millis;
  finishedAt?: Millis;
  exitCode?: number;
  /** The runtime's word: Completed, Error, OOMKilled, StartError, … */
  reason?: string;
  message?: string;
  /** The image as named when it was created. */
  image: string;
  /** Digest reference or ID (status.imageID). */
  imageId: string;
  annotations: Record<string, string>;
}

export interface PodObservation {
  sandboxes: SandboxObservation[];
  containers: ContainerObservation[];
}

export type RuntimeEvent =
  /** A container or sandbox of this Pod changed: observe it. */
  | { type: 'changed'; podUid: string }
  /** The stream was cut and is back (or the runtime restarted): observe everything. */
  | { type: 'resync' };

export interface ImageInfo {
  id: string;
  tags: string[];
  digests: string[];
  sizeBytes: number;
  user?: string;
}

export interface RuntimeVersion {
  name: string;
  version: string;
  apiVersion: string;
}

/** How a command in a container ended. Of stdout and stderr the first 16 KiB each. */
export interface ExecResult {
  exitCode: number;
  stdout: string;
  stderr: string;
}

/** Most that is kept of each of a command's outputs. */
export const MAX_EXEC_OUTPUT_BYTES = 16 * 1024;

/** A command did not end in its time; it has been killed. */
export class ExecTimeoutError extends Error {
  override readonly name = 'ExecTimeoutError';
  constructor(command: readonly string[]) {
    super(`command ${JSON.stringify(command.join(' '))} timed out`);
  }
}

export interface ContainerRuntime {
  version(signal: AbortSignal): Promise<RuntimeVersion>;
  /** Names what is not ready (NetworkReady, RuntimeReady), empty when all is well. */
  notReady(signal: AbortSignal): Promise<string[]>;

  runSandbox(config: SandboxConfig, signal: AbortSignal): Promise<string>;
  stopSandbox(id: string, signal: AbortSignal): Promise<void>;
  removeSandbox(id: string, signal: AbortSignal): Promise<void>;

  createContainer(
    sandboxId: string,
    sandbox: SandboxConfig,
    config: ContainerConfig,
    signal: AbortSignal,
  ): Promise<string>;
  startContainer(id: string, signal: AbortSignal): Promise<void>;
  /** Sends the stop signal, waits, kills at the end of the grace (0: at once). Resolves when the container is dead. */
  stopContainer(id: string, graceSeconds: number, signal: AbortSignal): Promise<void>;
  removeContainer(id: string, signal: AbortSignal): Promise<void>;
  /** Makes the runtime open the log file anew, after rotation. */
  reopenContainerLog(id: string, signal: AbortSignal): Promise<void>;
  /**
   * Runs a command in a running container and resolves when it and its output have ended, whatever its exit code.
   * Kills it and rejects with an ExecTimeoutError after `timeoutMillis` (0: it may take any time), with the signal's
   * reason on abort. Not idempotent.
   */
  execSync(id: string, command: readonly string[], timeoutMillis: Millis, signal: AbortSignal): Promise<ExecResult>;

  /** All sandboxes and containers that lifepod made, by Pod UID. */
  observeAll(signal: AbortSignal): Promise<Map<string, PodObservation>>;
  observe(podUid: string, signal: AbortSignal): Promise<PodObservation>;
  /** Calls the listener until `signal` aborts; reconnects by itself and then says `resync`. */
  events(listener: (event: RuntimeEvent) => void, signal: AbortSignal): Promise<void>;

  /** undefined where the image is not present. */
  imageStatus(reference: string, signal: AbortSignal): Promise<ImageInfo | undefined>;
  /** Returns the image's ID. Rejects with the registry's reason. */
  pullImage(reference: string, sandbox: SandboxConfig | undefined, signal: AbortSignal): Promise<string>;
  listImages(signal: AbortSignal): Promise<ImageInfo[]>;
  removeImage(id: string, signal: AbortSignal): Promise<void>;

  close(): Promise<void>;
}

/**
 * The streams of real containers; a runtime without processes has none. Each call answers with a URL on loopback that is
 * good for one connection, within a minute: http, upgraded to SPDY/3.1. Rejects where the container does not run.
 */
export interface ContainerStreams {
  exec(id: string, command: readonly string[], streams: StreamSelection, signal: AbortSignal): Promise<string>;
  attach(id: string, streams: StreamSelection, signal: AbortSignal): Promise<string>;
  portForward(sandboxId: string, ports: readonly number[], signal: AbortSignal): Promise<string>;
}
