/**
 * What the API server asks a node about itself: what it and its containers use, and the documents that upstream's kubelet
 * serves. The node implements it, the command line hands it to the API server.
 */
import type { Millis } from '../machinery/time.ts';

export interface ResourceUsage {
  /** CPU time in a second, in billionths of a second: 1e9 is one core. Over the window. */
  cpuNanoCores: number;
  /** At the end of the window: what cannot be taken away without harm. */
  memoryWorkingSetBytes: number;
}

/** Only of containers that run. */
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
  /** One after the other. The document of all Pods may be longer than a string can be. */
  texts: Iterable<string>;
}

export interface NodeReports {
  /** A rate needs two looks: takes up to a second where nobody has asked lately. */
  usage(): Promise<NodeUsage>;
  /**
   * What is at the path of the node's own server, such as `/stats/summary`; undefined where nothing is. Rejects with an
   * ApiError (503 ServiceUnavailable) where the node of that name cannot be reached.
   */
  document(node: string, path: string, signal: AbortSignal): Promise<NodeDocument | undefined>;
}
