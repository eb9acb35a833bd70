/**
 * The container runtime as the node sees it: CRI's verbs, with lifepod's labels made into fields.
 * cri/ speaks to containerd (and any CRI v1 runtime); simulated/ runs in virtual time. test/contract holds both to one suite.
 *
 * Every call is idempotent by name: running a sandbox or creating a container whose (pod UID, name, attempt) exists returns
 * the existing ID; stopping or removing what is gone is success. Every call takes an AbortSignal. A call whose outcome is not
 * known rejects with an OutcomeUnknownError.
 */

import type { Millis } from '../machinery/time.ts';
import type { StreamSelection } from '../ports/node-connection.ts';
import type { ContainerConfig, ContainerKind, SandboxConfig } from './configs.ts';

export type * from './configs.ts';

/** What only some runtimes can do. */
export interface RuntimeFeatures {
  /** It knows Strict. */
  supplementalGroupsPolicy: boolean;
  /** By name; '' is the default one. */
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
  /** The runtime needs it itself. */
  pinned?: true;
}

export interface ImageChange {
  /** As storedName writes it. */
  name: string;
  present: boolean;
}

export interface PulledBytes {
  doneBytes: number;
  totalBytes: number;
}

/** Who pulls. Never to be logged. */
export interface RegistryCredential {
  username: string;
  password: string;
}

/** As mount(8) takes it. */
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

/**
 * A call of which it is not known whether it had its effect: the runtime could not be reached, the connection was cut, or it
 * did not answer in time. Neither a success nor a failure: observe before deciding what is next.
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
  /** Names what is not ready (NetworkReady, RuntimeReady), empty when all is well. */
  notReady(signal: AbortSignal): Promise<string[]>;

  /** Absent, or undefined: it does not tell. */
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

  /**
   * Calls the listener with each image that comes or goes, whoever brings or removes it, until `signal` aborts; with
   * undefined where any may have. Absent, or resolved early: the runtime does not tell.
   */
  imageChanges?(listener: (change: ImageChange | undefined) => void, signal: AbortSignal): Promise<void>;
  /** undefined where the image is not present. */
  imageStatus(reference: string, signal: AbortSignal): Promise<ImageInfo | undefined>;
  /** Returns the image's ID. Rejects with the registry's reason. */
  pullImage(reference: string, credential: RegistryCredential | undefined, signal: AbortSignal): Promise<string>;
  /** How far the pulls of these images (storedName) are, as far as the runtime tells; absent: it never does. */
  pullProgress?(names: readonly string[], signal: AbortSignal): Promise<Map<string, PulledBytes>>;
  listImages(signal: AbortSignal): Promise<ImageInfo[]>;
  /** IDs or names of the images of all containers, also of those that others made. Absent: it has no disk to keep free. */
  imagesInUse?(signal: AbortSignal): Promise<string[]>;
  /** On the disk that holds the images; undefined where the runtime does not tell. */
  imageFolder?(signal: AbortSignal): Promise<string | undefined>;
  removeImage(id: string, signal: AbortSignal): Promise<void>;
  /** Resolves when the disk has what removed containers had written. Absent: it has it as soon as they are removed. */
  collectGarbage?(signal: AbortSignal): Promise<void>;
  /**
   * What to mount, in order, to have the files of an image that is present, read-only; they stay until they are released
   * under the same key, whatever becomes of the image. Absent: the runtime cannot.
   */
  imageMounts?(imageId: string, key: string, signal: AbortSignal): Promise<RuntimeMount[]>;
  /** After the mounts have ended; what is gone is success. */
  releaseImageMounts?(key: string, signal: AbortSignal): Promise<void>;

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

/** What a running container uses; what is cumulative counts from its start. Absent: the runtime does not tell. */
export interface ContainerUsage {
  podUid: string;
  id: string;
  name: string;
  attempt: number;
  /** When its CPU time was read. */
  at: Millis;
  cpuNanoSeconds: number;
  /** What cannot be taken from it without harm: all but pages of files that were not used lately. */
  workingSetBytes: number;
  usageBytes?: number;
  rssBytes?: number;
  pageFaults?: number;
  majorPageFaults?: number;
  /** Of the files that it has written outside of its volumes. The runtime may look at them only now and then. */
  rootFs?: { usedBytes: number; inodesUsed: number };
}

/** What real containers use; a runtime without processes has none. */
export interface RuntimeUsage {
  /** Of every running container that lifepod made. */
  containerUsage(signal: AbortSignal): Promise<ContainerUsage[]>;
  /** The first process of the sandbox, by which its namespaces are found. undefined: it has none, or the runtime does not tell. */
  sandboxPid(id: string, signal: AbortSignal): Promise<number | undefined>;
}
