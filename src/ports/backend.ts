/**
 * The resource verbs of the API as typed calls: ResourceApi for a client, which acts as one user, and ResourceBackend for the API server,
 * which passes the context of the request with each call. This is a port because the API server and the client may not import each other.
 *
 * Returned objects are shared and must not be modified (copy with structuredClone). A call that fails rejects with an ApiError
 * (machinery/status.ts). A call that is aborted may reject with the reason of its signal instead.
 */
import type { KubeList, KubeObject, ResourceRef, Status } from '../machinery/meta.ts';
import type { PatchType } from '../machinery/patch/patch.ts';
import type { RequestContext } from './request.ts';

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
  /**
   * The version after which the watch reports changes. Undefined or '0': the watch begins with ADDED events for existing objects.
   * sendInitialEvents takes precedence if it is set.
   */
  resourceVersion?: string;
  /** Must be NotOlderThan if sendInitialEvents is set, and absent otherwise. */
  resourceVersionMatch?: 'Exact' | 'NotOlderThan';
  allowWatchBookmarks?: boolean;
  /**
   * True: the watch begins with ADDED events for existing objects and, with allowWatchBookmarks, a BOOKMARK event with the annotation
   * k8s.io/initial-events-end. False: the watch contains only changes. Undefined: resourceVersion decides.
   */
  sendInitialEvents?: boolean;
  timeoutSeconds?: number;
}

export type WatchEvent<T extends KubeObject = KubeObject> =
  | { type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK'; object: T }
  | { type: 'ERROR'; object: Status };

/**
 * Receives the events of a watch. In the API server, `initial` is set if the object belongs to the initial state of the watch: `shared` if
 * the object is in the cache, `own` if the object was read only for this watch.
 */
export type WatchSink = (event: WatchEvent, initial?: 'shared' | 'own') => void;

export interface WriteOptions {
  dryRun?: boolean;
  fieldManager?: string;
  /** Whether server-side apply takes over fields that other managers own with other values. False or absent: rejects with 409 Conflict. */
  force?: boolean;
  /** How to treat unknown and duplicate fields. Like upstream, the default is Warn. */
  fieldValidation?: 'Ignore' | 'Warn' | 'Strict';
  /** HTTP clients receive the texts in Warning headers. */
  onWarning?: (text: string) => void;
}

export interface DeleteOptions extends WriteOptions {
  gracePeriodSeconds?: number;
  preconditions?: { uid?: string; resourceVersion?: string };
  propagationPolicy?: string;
}

export interface PatchOptions extends WriteOptions {
  /** Called before a server-side apply creates the object. Rejects if the user may not create the object. Absent: the user may. */
  mayCreate?: () => Promise<void>;
  onCreated?: () => void;
}

/** The API as one user calls it, in process or over HTTPS. */
export interface ResourceApi {
  get(ref: ResourceRef, namespace: string | undefined, name: string): Promise<KubeObject>;
  /**
   * In process, rejects when `signal` aborts while the list is read from the store. A list that is read from the cache or over HTTP does
   * not check `signal`.
   */
  list(ref: ResourceRef, options: ListOptions, signal?: AbortSignal): Promise<KubeList>;
  /**
   * Calls `sink` for each event in order. Resolves when `signal` aborts or when the watch ends (timeout, 410 as an ERROR event or, over
   * HTTP, a lost connection). Rejects if the watch cannot start or, over HTTP, if an event cannot be decoded.
   */
  watch(ref: ResourceRef, options: WatchOptions, sink: WatchSink, signal: AbortSignal): Promise<void>;
  /**
   * With a `subresource`, `object` is of the subresource's kind, and the result is a Status for 'binding' and 'eviction', and a
   * TokenRequest for 'token'.
   */
  create(
    ref: ResourceRef,
    namespace: string | undefined,
    object: KubeObject,
    options?: WriteOptions & { name?: string; subresource?: string },
  ): Promise<KubeObject>;
  /**
   * Replaces the object; with a `subresource` such as 'status', only the fields that belong to the subresource. If `object` has a
   * resourceVersion that is not the current one, rejects with 409 Conflict.
   */
  update(ref: ResourceRef, object: KubeObject, options?: WriteOptions & { subresource?: string }): Promise<KubeObject>;
  patch(
    ref: ResourceRef,
    namespace: string | undefined,
    name: string,
    type: PatchType,
    body: unknown,
    options?: PatchOptions & { subresource?: string },
  ): Promise<KubeObject>;
  /**
   * Resolves to the object if it is terminating now. If the object was deleted immediately, resolves to a Status or, for kinds whose
   * deletion returns the object, to the object's last state.
   */
  delete(
    ref: ResourceRef,
    namespace: string | undefined,
    name: string,
    options?: DeleteOptions,
  ): Promise<KubeObject | Status>;
  deleteCollection(ref: ResourceRef, options: ListOptions & DeleteOptions): Promise<KubeList>;
}

export interface ResourceBackend {
  get(request: RequestContext): Promise<KubeObject>;
  /** Rejects when the signal of the request aborts while the list is read from the store. */
  list(request: RequestContext, options: ListOptions): Promise<KubeList>;
  /** Like ResourceApi.watch(). The watch ends when the signal of the request aborts. */
  watch(request: RequestContext, options: WatchOptions, sink: WatchSink): Promise<void>;
  create(request: RequestContext, object: KubeObject, options?: WriteOptions): Promise<KubeObject>;
  update(request: RequestContext, object: KubeObject, options?: WriteOptions): Promise<KubeObject>;
  patch(request: RequestContext, type: PatchType, body: unknown, options?: PatchOptions): Promise<KubeObject>;
  delete(request: RequestContext, options?: DeleteOptions): Promise<KubeObject | Status>;
  deleteCollection(request: RequestContext, options: ListOptions & DeleteOptions): Promise<KubeList>;
  /**
   * Calls the listener with each object that the backend removes from its cache because the object was changed or deleted. The returned
   * function removes the listener. The method is absent if the backend does not cache objects.
   */
  onDrop?(listener: (object: KubeObject) => void): () => void;
}
