/**
 * What the API server requests from a node about the node itself: resource usage, and the documents that upstream's kubelet
 * serves. The node implements this interface, and the engine passes it to the API server.
 */
import type { Millis } from '../machinery/time.ts';

export interface ResourceUsage {
  /** CPU time per second in nanoseconds, averaged over the window: 1e9 is one core. */
  cpuNanoCores: number;
  /** Memory at the end of the window that cannot be reclaimed without harm. */
  memoryWorkingSetBytes: number;
}

/** The usage of the running containers of a Pod. */
export interface PodUsage {
  namespace: string;
  name: string;
  containers: readonly (ResourceUsage & { name: string })[];
}

export interface NodeUsage extends ResourceUsage {
  node: string;
  /** The end of the window. */
  at: Millis;
  windowMillis: Millis;
  pods: readonly PodUsage[];
}

export interface NodeDocument {
  contentType: string;
  /** To be concatenated. The document of all Pods may be longer than the longest possible string. */
  texts: Iterable<string>;
}

export interface NodeReports {
  /** A CPU rate needs two samples, so this takes up to a second if there is no recent sample. */
  usage(): Promise<NodeUsage>;
  /**
   * The document at a path of the node's own server, such as `/stats/summary`; undefined if there is none. Rejects with an
   * ApiError (503 ServiceUnavailable) if the node of that name cannot be reached.
   */
  document(node: string, path: string, signal: AbortSignal): Promise<NodeDocument | undefined>;
}
