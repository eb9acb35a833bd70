/**
 * The node's interface to the container runtime: CRI's calls, with lifepod's labels as fields. cri/ implements the interface for containerd
 * and any other CRI v1 runtime; simulated/ implements it in virtual time. test/contract runs one suite on both.
 *
 * Calls that create, stop or remove a sandbox or container may be repeated. A repeated creation returns the ID of the existing sandbox
 * (same Pod UID and attempt) or container (same Pod UID, name and attempt). A stop or removal succeeds if the sandbox or container does not
 * exist.
 *
 * A call with an unknown outcome rejects with an OutcomeUnknownError. An aborted call, except events() and imageChanges(), rejects with the
 * signal's reason; whether it has taken effect may be unknown.
 */

import type { Millis } from '../machinery/time.ts';
import type { StreamSelection } from '../ports/node-connection.ts';
import type { ContainerConfig, ContainerKind, PodIdentity, SandboxConfig } from './configs.ts';

export type * from './configs.ts';

export interface RuntimeFeatures {
  /** Whether the runtime supports the supplementalGroupsPolicy Strict. */
  supplementalGroupsPolicy: boolean;
  /** The name '' stands for the default handler. */
  handlers: readonly { name: string; recursiveReadOnlyMounts: boolean }[];
}

export interface SandboxObservation {
  id: string;
  podUid: string;
  namespace: string;
  name: string;
  attempt: number;
  ready: boolean;
  createdAt: Millis;
  /** The primary address first. A CRI runtime reports no addresses if the sandbox is not ready or uses the host's network. */
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
  /** Why the container exited: Completed, Error, OOMKilled, StartError, …; absent before the exit, or if the runtime gives no reason. */
  reason?: string;
  message?: string;
  /** The imageName with which the container was created. */
  image: string;
  /** The value of status.imageID. */
  imageId: string;
  annotations: Record<string, string>;
}

export interface PodObservation {
  sandboxes: SandboxObservation[];
  containers: ContainerObservation[];
}

/** Returns whether a sandbox or container of the Pod runs. */
export const hasRunning = ({ sandboxes, containers }: PodObservation): boolean =>
  sandboxes.some(({ ready }) => ready) || containers.some(({ state }) => state === 'running');

export type RuntimeEvent =
  /** A container or sandbox of this Pod has changed, so the Pod must be observed. */
  | { type: 'changed'; podUid: string }
  /** Earlier events may have been missed, so all Pods must be observed. */
  | { type: 'resync' };

export interface ImageInfo {
  id: string;
  tags: string[];
  digests: string[];
  sizeBytes: number;
  user?: string;
  /** Garbage collection must keep the image. Runtimes pin the images that they need themselves, such as the sandbox image. */
  pinned?: true;
}

export interface ImageChange {
  /** The name under which the runtime stores the image, normally in the form that storedName() returns. */
  name: string;
  present: boolean;
}

export interface PulledBytes {
  doneBytes: number;
  totalBytes: number;
}

/** The credential for a pull. It must never be logged. */
export interface RegistryCredential {
  username: string;
  password: string;
}

/** The arguments for mount(8), except for the mount point. */
export interface RuntimeMount {
  type: string;
  source: string;
  options: string[];
}

export interface RuntimeVersion {
  name: string;
  version: string;
  apiVersion: string;
}

/** stdout and stderr each contain at most MAX_EXEC_OUTPUT_BYTES. */
export interface ExecResult {
  exitCode: number;
  stdout: string;
  stderr: string;
}

export const MAX_EXEC_OUTPUT_BYTES = 16 * 1024;

/** A command in a container did not end within its timeout and was killed. */
export class ExecTimeoutError extends Error {
  override readonly name = 'ExecTimeoutError';
  constructor(command: readonly string[]) {
    super(`command ${JSON.stringify(command.join(' '))} timed out`);
  }
}

/**
 * A call may or may not have taken effect: for example, the runtime could not be reached, the connection was lost, or the runtime did not
 * respond in time. The caller must treat the call neither as success nor as failure, but observe the Pod before it decides what to do next.
 */
export class OutcomeUnknownError extends Error {
  override readonly name = 'OutcomeUnknownError';
  /** `options.cause`: the error of the call, if there is one. */
  constructor(message: string, options?: { cause: unknown }) {
    super(message, options);
  }
}

export interface ContainerRuntime {
  version(signal: AbortSignal): Promise<RuntimeVersion>;
  /** Resolves with a message for each required condition (RuntimeReady, NetworkReady) that the runtime reports as not met. */
  notReady(signal: AbortSignal): Promise<string[]>;

  /** Absent, or resolves with undefined, if the runtime does not report its features. */
  features?(signal: AbortSignal): Promise<RuntimeFeatures | undefined>;

  runSandbox(config: SandboxConfig, signal: AbortSignal): Promise<string>;
  stopSandbox(id: string, signal: AbortSignal): Promise<void>;
  removeSandbox(id: string, signal: AbortSignal): Promise<void>;

  /** Creates the container without starting it. Resolves with its ID. */
  createContainer(
    sandboxId: string,
    sandbox: SandboxConfig,
    config: ContainerConfig,
    signal: AbortSignal,
  ): Promise<string>;
  startContainer(id: string, signal: AbortSignal): Promise<void>;
  /**
   * Sends the stop signal, and kills the container if it still runs after the grace period, which may be 0. Resolves when the container has
   * ended.
   */
  stopContainer(id: string, graceSeconds: number, signal: AbortSignal): Promise<void>;
  removeContainer(id: string, signal: AbortSignal): Promise<void>;
  /** Must be called each time the container's log file has been rotated. */
  reopenContainerLog(id: string, signal: AbortSignal): Promise<void>;
  /**
   * Resolves when the log of an exited container contains all of its output: an exit may be observed before the runtime has written the
   * last output. After about 10 seconds, resolves even if output may still be missing. Does not reject if the runtime is unreachable.
   * Absent if the runtime writes no logs.
   */
  logEnded?(id: string, signal: AbortSignal): Promise<void>;
  /**
   * Runs a command in a running container. Resolves when the command and its output have ended, even if the exit code is not 0. After
   * `timeoutMillis` (0: no limit), kills the command and rejects with an ExecTimeoutError. On abort, kills the command and rejects with the
   * signal's reason. Not idempotent.
   */
  execSync(id: string, command: readonly string[], timeoutMillis: Millis, signal: AbortSignal): Promise<ExecResult>;

  /** Resolves with the sandboxes and containers that this lifepod instance created, by Pod UID. */
  observeAll(signal: AbortSignal): Promise<Map<string, PodObservation>>;
  observe(podUid: string, signal: AbortSignal): Promise<PodObservation>;
  /**
   * Calls the listener with each event, and resolves when `signal` aborts. Reconnects automatically, and then sends `resync`. A real
   * runtime also sends `resync` at the beginning.
   */
  events(listener: (event: RuntimeEvent) => void, signal: AbortSignal): Promise<void>;

  /**
   * Calls the listener with each image that is added, updated or removed for any reason, until `signal` aborts; with undefined if any image
   * may have changed. Absent, or resolves early, if the runtime has no image events.
   */
  imageChanges?(listener: (change: ImageChange | undefined) => void, signal: AbortSignal): Promise<void>;
  /** Resolves with the image that has this reference or ID; with undefined if the image is not present. */
  imageStatus(reference: string, signal: AbortSignal): Promise<ImageInfo | undefined>;
  /** Resolves with a reference to the image, such as its ID. If the pull fails, rejects with the runtime's error. */
  pullImage(reference: string, credential: RegistryCredential | undefined, signal: AbortSignal): Promise<string>;
  /**
   * Resolves with the known progress of the pulls of these images, by name. `names`: results of storedName(). Absent if the runtime does
   * not report progress.
   */
  pullProgress?(names: readonly string[], signal: AbortSignal): Promise<Map<string, PulledBytes>>;
  listImages(signal: AbortSignal): Promise<ImageInfo[]>;
  /**
   * Resolves with the IDs and names of the images of all containers, including containers of other clients of the runtime. Absent if the
   * runtime does not store images on a disk.
   */
  imagesInUse?(signal: AbortSignal): Promise<string[]>;
  /**
   * Resolves with a folder on the disk on which images are stored; undefined if the runtime does not report one. Absent if the runtime does
   * not store images on a disk.
   */
  imageFolder?(signal: AbortSignal): Promise<string | undefined>;
  removeImage(id: string, signal: AbortSignal): Promise<void>;
  /**
   * Resolves when the data of removed containers has been deleted from the disk. Absent if the runtime deletes the data together with the
   * container.
   */
  collectGarbage?(signal: AbortSignal): Promise<void>;
  /**
   * Resolves with the mounts, in order, that make the files of a present image available, read-only. The runtime keeps the files until
   * releaseImageMounts() is called with the same key, even if the image is removed. Absent if the runtime cannot provide such mounts.
   */
  imageMounts?(imageId: string, key: string, signal: AbortSignal): Promise<RuntimeMount[]>;
  /** Must be called after the mounts of imageMounts() with this key are unmounted. NotFound is success. */
  releaseImageMounts?(key: string, signal: AbortSignal): Promise<void>;

  close(): Promise<void>;
}

/**
 * Opens streams of real containers. Each call resolves with an HTTP URL on loopback that is valid for one connection within one minute; the
 * client must upgrade the connection to SPDY/3.1, or to a WebSocket with a subprotocol older than v5.channel.k8s.io. A call rejects if the
 * container is not running or, for portForward(), if the sandbox is not ready.
 */
export interface ContainerStreams {
  exec(id: string, command: readonly string[], streams: StreamSelection, signal: AbortSignal): Promise<string>;
  attach(id: string, streams: StreamSelection, signal: AbortSignal): Promise<string>;
  portForward(sandboxId: string, ports: readonly number[], signal: AbortSignal): Promise<string>;
}

export interface SandboxPod extends PodIdentity {
  /** The labels in SandboxConfig.labels, which may lack some labels of the Pod. */
  labels: Record<string, string>;
}

/** Only a runtime whose sandboxes outlive the engine implements this interface. */
export interface SandboxPods {
  /** Resolves with the Pods of the sandboxes that this lifepod instance created, by the ID of the sandbox. */
  sandboxPods(signal: AbortSignal): Promise<Map<string, SandboxPod>>;
}

/**
 * The resource usage of a running container. Cumulative values count from the container's start. Optional values are absent if the runtime
 * does not report them.
 */
export interface ContainerUsage {
  podUid: string;
  id: string;
  name: string;
  attempt: number;
  /** When cpuNanoSeconds was measured, by the machine's clock; 0 if the runtime does not report this time. */
  at: Millis;
  cpuNanoSeconds: number;
  /** Memory usage, except for file pages that were not used recently: the kernel can reclaim those pages without harm. */
  workingSetBytes: number;
  usageBytes?: number;
  rssBytes?: number;
  pageFaults?: number;
  majorPageFaults?: number;
  /** The size and number of the files that the container has written outside of its volumes. The values may be some time old. */
  rootFs?: { usedBytes: number; inodesUsed: number };
}

/** A runtime without processes does not implement this interface. */
export interface RuntimeUsage {
  /** Resolves with the usage of the running containers that this lifepod instance created, as far as the runtime reports it. */
  containerUsage(signal: AbortSignal): Promise<ContainerUsage[]>;
  /**
   * Resolves with the ID of the sandbox's first process, whose entry in /proc shows the sandbox's network; undefined if the sandbox does
   * not exist or the runtime does not report the ID.
   */
  sandboxPid(id: string, signal: AbortSignal): Promise<number | undefined>;
}
