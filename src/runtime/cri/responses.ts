/**
 * CRI's responses as definitions.ts decodes them. Times are numbers of nanoseconds since the epoch, except for Timestamp. Fields that the
 * runtime did not send are 0, false, '', null or empty.
 */

export type SandboxStateName = 'SANDBOX_READY' | 'SANDBOX_NOTREADY';
export type ContainerStateName = 'CONTAINER_CREATED' | 'CONTAINER_RUNNING' | 'CONTAINER_EXITED' | 'CONTAINER_UNKNOWN';

export interface ListedSandbox {
  id: string;
  metadata: { name: string; uid: string; namespace: string; attempt: number };
  state: SandboxStateName;
  createdAt: number;
  labels: Record<string, string>;
}

export interface SandboxStatus {
  id: string;
  metadata: { name: string; uid: string; namespace: string; attempt: number };
  state: SandboxStateName;
  network: { ip: string; additionalIps: { ip: string }[] } | null;
  labels: Record<string, string>;
}

export interface ListedContainer {
  id: string;
  podSandboxId: string;
  metadata: { name: string; attempt: number };
  image: { image: string } | null;
  imageRef: string;
  state: ContainerStateName;
  createdAt: number;
  labels: Record<string, string>;
  annotations: Record<string, string>;
}

export interface ContainerStatus {
  id: string;
  state: ContainerStateName;
  startedAt: number;
  finishedAt: number;
  exitCode: number;
  imageRef: string;
  reason: string;
  message: string;
  /** Empty if the container has no log file. */
  logPath: string;
}

export interface Image {
  id: string;
  repoTags: string[];
  repoDigests: string[];
  size: number;
  uid: { value: number } | null;
  username: string;
  pinned: boolean;
}

/** Runtimes from before 2024 do not send `runtimeHandlers` and `features`. */
export interface RuntimeStatus {
  status: { conditions: { type: string; status: boolean; reason: string; message: string }[] } | null;
  runtimeHandlers: { name: string; features: { recursiveReadOnlyMounts: boolean } | null }[];
  features: { supplementalGroupsPolicy: boolean } | null;
  info: Record<string, string>;
}

const NANOS_PER_MILLI = 1e6;

/** Returns undefined for 0, which CRI uses for an event that has not happened. */
export const millisOf = (nanos: number): number | undefined =>
  nanos > 0 ? Math.floor(nanos / NANOS_PER_MILLI) : undefined;

/** The message google.protobuf.Timestamp. */
export interface Timestamp {
  seconds: number;
  nanos: number;
}

export const timestampMillis = (time: Timestamp | null): number | undefined =>
  time === null ? undefined : time.seconds * 1000 + Math.floor(time.nanos / 1e6);
