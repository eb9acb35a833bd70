/**
 * The resource verbs of the API as typed calls: what the API server offers in process,
 * and what a client calls, over HTTP or directly. It is a port because the API server and the client
 * may not import each other.
 *
 * Objects that come out are shared and must not be modified (copy with structuredClone).
 * Every call fails with an ApiError (see status.ts) that carries a metav1.Status.
 */
import type { KubeList, KubeObject, ResourceRef, Status } from '../machinery/meta.ts';
import type { PatchType } from '../machinery/patch/patch.ts';

export interface ListOptions {
  namespace?: string;
  labelSelector?: string;
  fieldSelector?: string;
  limit?: number;
  continue?: string;
  resourceVersion?: string;
  resourceVersionMatch?: 'Exact' | 'NotOlderThan';
}

export interface WatchOptions {
  namespace?: string;
  labelSelector?: string;
  fieldSelector?: string;
  /** Undefined or '0': synthetic ADDED events for what exists, then changes. */
  resourceVersion?: string;
  /** Only with sendInitialEvents, and then required. */
  resourceVersionMatch?: 'Exact' | 'NotOlderThan';
  allowWatchBookmarks?: boolean;
  /** True: ADDED events for what exists, then a BOOKMARK annotated k8s.io/initial-events-end. False: only changes. */
  sendInitialEvents?: boolean;
  timeoutSeconds?: number;
}

export type WatchEvent<T extends KubeObject = KubeObject> =
  | { type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK'; object: T }
  | { type: 'ERROR'; object: Status };

/**
 * `initial`: the object is one of those that the watch begins with, which the cache has (`shared`), or which was read for this watch
 * alone (`own`).
 */
export type WatchSink = (event: WatchEvent, initial?: 'shared' | 'own') => void;

export interface WriteOptions {
  dryRun?: boolean;
  fieldManager?: string;
  /** Server-side apply takes fields from their owners. */
  force?: boolean;
  /** What to do with unknown and duplicate fields; upstream's default is Warn. */
  fieldValidation?: 'Ignore' | 'Warn' | 'Strict';
  /** Called with each sentence for the client's Warning header. */
  onWarning?: (text: string) => void;
  /** Who asks; absent: a part of lifepod in the same process. */
  user?: UserInfo;
}

export interface DeleteOptions extends WriteOptions {
  gracePeriodSeconds?: number;
  preconditions?: { uid?: string; resourceVersion?: string };
  propagationPolicy?: string;
}

/** As the client's certificate says it. */
export interface UserInfo {
  name: string;
  groups: string[];
}

export interface ResourceBackend {
  get(ref: ResourceRef, namespace: string | undefined, name: string): Promise<KubeObject>;
  /** Rejects when `signal` aborts, where the list is read in more than one step. */
  list(ref: ResourceRef, options: ListOptions, signal?: AbortSignal): Promise<KubeList>;
  /**
   * Calls `sink` for each event, in order, until `signal` aborts (resolves) or the watch ends by
   * itself (timeout, 410 as an ERROR event; resolves). Rejects where the watch cannot start.
   */
  watch(ref: ResourceRef, options: WatchOptions, sink: WatchSink, signal: AbortSignal): Promise<void>;
  /** `subresource` such as 'binding': the body is that subresource's kind and the answer its own. */
  create(
    ref: ResourceRef,
    namespace: string | undefined,
    object: KubeObject,
    options?: WriteOptions & { name?: string; subresource?: string },
  ): Promise<KubeObject>;
  /** `subresource` 'status' replaces the status alone. A resourceVersion in the object is a precondition (409). */
  update(ref: ResourceRef, object: KubeObject, options?: WriteOptions & { subresource?: string }): Promise<KubeObject>;
  patch(
    ref: ResourceRef,
    namespace: string | undefined,
    name: string,
    type: PatchType,
    body: unknown,
    options?: WriteOptions & {
      subresource?: string;
      /** Called where a server-side apply makes the object. */
      onCreated?: () => void;
    },
  ): Promise<KubeObject>;
  /** The object as it is now (terminating) or as it was when it went. */
  delete(
    ref: ResourceRef,
    namespace: string | undefined,
    name: string,
    options?: DeleteOptions,
  ): Promise<KubeObject | Status>;
  deleteCollection(ref: ResourceRef, options: ListOptions & DeleteOptions): Promise<KubeList>;
  /**
   * Calls the listener with each object that the backend has given out and no longer holds itself. Returns the function that ends it.
   * Absent: the backend holds no objects.
   */
  onDrop?(listener: (object: KubeObject) => void): () => void;
}
