/**
 * The container runtime as the node sees it: CRI's verbs, with lifepod's labels as fields.
 * cri/ speaks to containerd (and any CRI v1 runtime); simulated/ runs in virtual time. test/contract runs one suite on both.
 *
 * Every call is idempotent by name: running a sandbox or creating a container whose (pod UID, name, attempt) exists returns
 * the existing ID; stop and remove treat NotFound as success. Every call takes an AbortSignal. A call with an unknown outcome
 * rejects with an OutcomeUnknownError.
 */

import type { Millis } from '../machinery/time.ts';
import type { StreamSelection } from '../ports/node-connection.ts';
import type { ContainerConfig, ContainerKind, SandboxConfig } from './configs.ts';

export type * from './configs.ts';

/** Features that only some runtimes have. */
export interface RuntimeFeatures {
  /** The runtime supports the policy Strict. */
  supplementalGroupsPolicy: boolean;
  /** By name; '' is the default handler. */
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
  /** The primary address first; empty if there is none (yet, or host network). */
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
  /** The runtime's reason: Completed, Error, OOMKilled, StartError, … */
  reason?: string;
  message?: string;
  /** The image as named when the container was created. */
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
  /** The stream was cut and has been reopened (or the runtime restarted): observe everything. */
  | { type: 'resync' };

export interface ImageInfo {
  id: string;
  tags: string[];
  digests: string[];
  sizeBytes: number;
  user?: string;
  /** The runtime itself needs the image. */
  pinned?: true;
}

export interface ImageChange {
  /** As storedName returns it. */
  name: string;
  present: boolean;
}

export interface PulledBytes {
  doneBytes: number;
  totalBytes: number;
}

/** The credential for a pull. Must never be logged. */
export interface RegistryCredential {
  username: string;
  password: string;
}

/** The arguments of mount(8). */
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

/** How a command in a container ended. stdout and stderr have the first 16 KiB of each. */
export interface ExecResult {
  exitCode: number;
  stdout: string;
  stderr: string;
}

/** Maximum size that is kept of each output of a command. */
export const MAX_EXEC_OUTPUT_BYTES = 16 * 1024;

/** A command did not end in time, and was killed. */
export class ExecTimeoutError extends Error {
  override readonly name = 'ExecTimeoutError';
  constructor(command: readonly string[]) {
    super(`command ${JSON.stringify(command.join(' '))} timed out`);
  }
}

/**
 * It is not known whether a call had its effect: the runtime could not be reached, the connection was cut, or the runtime did not
 * respond in time. Neither a success nor a failure: observe before deciding what to do next.
 */
export class OutcomeUnknownError extends Error {
  override readonly name = 'OutcomeUnknownError';
  /** `cause`: the error of the call. */
  constructor(message: string, options?: { cause: unknown }) {
    super(message, options);
  }
}

export interface ContainerRuntime {
  version(signal: AbortSignal): Promise<RuntimeVersion>;
  /** The conditions that are not met (NetworkReady, RuntimeReady); empty if the runtime is ready. */
  notReady(signal: AbortSignal): Promise<string[]>;

  /** Absent, or undefined: the runtime does not report them. */
  features?(signal: AbortSignal): Promise<RuntimeFeatures | undefined>;

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
  /** Sends the stop signal, waits, and kills at the end of the grace period (0: at once). Resolves when the container is dead. */
  stopContainer(id: string, graceSeconds: number, signal: AbortSignal): Promise<void>;
  removeContainer(id: string, signal: AbortSignal): Promise<void>;
  /** Makes the runtime reopen the log file, after rotation. */
  reopenContainerLog(id: string, signal: AbortSignal): Promise<void>;
  /**
   * Runs a command in a running container and resolves when the command and its output have ended, whatever its exit code.
   * Kills it and rejects with an ExecTimeoutError after `timeoutMillis` (0: no limit), or with the signal's reason on abort.
   * Not idempotent.
   */
  execSync(id: string, command: readonly string[], timeoutMillis: Millis, signal: AbortSignal): Promise<ExecResult>;

  /** All sandboxes and containers that lifepod created, by Pod UID. */
  observeAll(signal: AbortSignal): Promise<Map<string, PodObservation>>;
  observe(podUid: string, signal: AbortSignal): Promise<PodObservation>;
  /** Calls the listener until `signal` aborts; reconnects automatically, and then sends `resync`. */
  events(listener: (event: RuntimeEvent) => void, signal: AbortSignal): Promise<void>;

  /**
   * Calls the listener with each image that appears or disappears, whatever the cause, until `signal` aborts; with undefined if any
   * image may have changed. Absent, or resolved early: the runtime has no such events.
   */
  imageChanges?(listener: (change: ImageChange | undefined) => void, signal: AbortSignal): Promise<void>;
  /** undefined if the image is not present. */
  imageStatus(reference: string, signal: AbortSignal): Promise<ImageInfo | undefined>;
  /** Returns the image's ID. Rejects with the registry's error. */
  pullImage(reference: string, credential: RegistryCredential | undefined, signal: AbortSignal): Promise<string>;
  /** The progress of the pulls of these images (storedName), as far as the runtime reports it; absent: it never does. */
  pullProgress?(names: readonly string[], signal: AbortSignal): Promise<Map<string, PulledBytes>>;
  listImages(signal: AbortSignal): Promise<ImageInfo[]>;
  /** IDs or names of the images of all containers, including those of other clients. Absent: the runtime has no disk to keep free. */
  imagesInUse?(signal: AbortSignal): Promise<string[]>;
  /** A folder on the disk that holds the images; undefined if the runtime does not report it. */
  imageFolder?(signal: AbortSignal): Promise<string | undefined>;
  removeImage(id: string, signal: AbortSignal): Promise<void>;
  /** Resolves once the data of removed containers is deleted from the disk. Absent: it is deleted when they are removed. */
  collectGarbage?(signal: AbortSignal): Promise<void>;
  /**
   * The mounts, in order, that show the files of a present image, read-only; they stay until they are released under the same key,
   * even if the image is removed. Absent: the runtime does not support this.
   */
  imageMounts?(imageId: string, key: string, signal: AbortSignal): Promise<RuntimeMount[]>;
  /** To be called after unmounting; NotFound is success. */
  releaseImageMounts?(key: string, signal: AbortSignal): Promise<void>;

  close(): Promise<void>;
}

/**
 * The streams of real containers; a runtime without processes has none. Each call returns a URL on loopback that is valid for
 * one connection, within a minute: http, upgraded to SPDY/3.1. Rejects if the container does not run.
 */
export interface ContainerStreams {
  exec(id: string, command: readonly string[], streams: StreamSelection, signal: AbortSignal): Promise<string>;
  attach(id: string, streams: StreamSelection, signal: AbortSignal): Promise<string>;
  portForward(sandboxId: string, ports: readonly number[], signal: AbortSignal): Promise<string>;
}

/** Resource usage of a running container; cumulative values count from its start. Absent: the runtime does not report the value. */
export interface ContainerUsage {
  podUid: string;
  id: string;
  name: string;
  attempt: number;
  /** When the CPU time was read. */
  at: Millis;
  cpuNanoSeconds: number;
  /** Memory that cannot be reclaimed without harm: all but pages of files that were not used recently. */
  workingSetBytes: number;
  usageBytes?: number;
  rssBytes?: number;
  pageFaults?: number;
  majorPageFaults?: number;
  /** The files that the container has written outside of its volumes. The runtime may measure them only now and then. */
  rootFs?: { usedBytes: number; inodesUsed: number };
}

/** Resource usage of real containers; a runtime without processes has none. */
export interface RuntimeUsage {
  /** For every running container that lifepod created. */
  containerUsage(signal: AbortSignal): Promise<ContainerUsage[]>;
  /** The first process of the sandbox, by which its namespaces are found; undefined: none, or the runtime does not report it. */
  sandboxPid(id: string, signal: AbortSignal): Promise<number | undefined>;
}
