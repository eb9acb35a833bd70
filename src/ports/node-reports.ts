/** The API server's requests to a node for reports. The node implements this interface, and the engine passes it to the API server. */
import type { Millis } from '../machinery/time.ts';

export interface ResourceUsage {
  /** CPU time per second in nanoseconds, averaged over the window: 1e9 is one core. */
  cpuNanoCores: number;
  /** The working set at the end of the window: the used memory without file pages that the kernel can easily reclaim. */
  memoryWorkingSetBytes: number;
}

/** Containers whose CPU rate is not known yet are omitted. */
export interface PodUsage {
  namespace: string;
  name: string;
  containers: readonly (ResourceUsage & { name: string })[];
}

export interface NodeUsage extends ResourceUsage {
  node: string;
  /** The end of the window for which the usage was measured. */
  at: Millis;
  windowMillis: Millis;
  pods: readonly PodUsage[];
}

export interface NodeDocument {
  contentType: string;
  /** The parts of the document, to be concatenated. The document about all Pods may be too long for one JavaScript string. */
  texts: Iterable<string>;
}

export interface NodeReports {
  /** Takes about a second if there is no recent sample, because a CPU rate needs two samples. */
  usage(): Promise<NodeUsage>;
  /**
   * Resolves to the document that a kubelet serves at the path, such as `/stats/summary`; to undefined if the node has none. Rejects with
   * an ApiError (503 ServiceUnavailable) if there is no connection to a node with the name `node`.
   */
  document(node: string, path: string, signal: AbortSignal): Promise<NodeDocument | undefined>;
}
