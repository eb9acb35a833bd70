/**
 * The resource verbs of the API as typed calls. The API server implements them in process; a client calls them in process or
 * over HTTP. This is a port because the API server and the client may not import each other.
 *
 * Returned objects are shared and must not be modified (copy with structuredClone).
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
  /** Undefined or '0': synthetic ADDED events for existing objects, then changes. */
  resourceVersion?: string;
  /** Allowed only with sendInitialEvents, and then required. */
  resourceVersionMatch?: 'Exact' | 'NotOlderThan';
  allowWatchBookmarks?: boolean;
  /** True: ADDED events for existing objects, then a BOOKMARK annotated k8s.io/initial-events-end. False: only changes. */
  sendInitialEvents?: boolean;
  timeoutSeconds?: number;
}

export type WatchEvent<T extends KubeObject = KubeObject> =
  | { type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK'; object: T }
  | { type: 'ERROR'; object: Status };

/**
 * `initial` marks an object of the initial state of the watch: `shared` if the cache holds it, `own` if it was read for this
 * watch alone.
 */
export type WatchSink = (event: WatchEvent, initial?: 'shared' | 'own') => void;

export interface WriteOptions {
  dryRun?: boolean;
  fieldManager?: string;
  /** Whether server-side apply takes over fields that other managers own. */
  force?: boolean;
  /** How to treat unknown and duplicate fields. Upstream's default is Warn. */
  fieldValidation?: 'Ignore' | 'Warn' | 'Strict';
  /** Called with each text of the client's Warning header. */
  onWarning?: (text: string) => void;
  /** The user who sent the request; absent for components of lifepod in the same process. */
  user?: UserInfo;
}

export interface DeleteOptions extends WriteOptions {
  gracePeriodSeconds?: number;
  preconditions?: { uid?: string; resourceVersion?: string };
  propagationPolicy?: string;
}

/** The user as named by the client's certificate. */
export interface UserInfo {
  name: string;
  groups: string[];
}

export interface ResourceBackend {
  get(ref: ResourceRef, namespace: string | undefined, name: string): Promise<KubeObject>;
  /** Rejects when `signal` aborts, if the list is read in more than one step. */
  list(ref: ResourceRef, options: ListOptions, signal?: AbortSignal): Promise<KubeList>;
  /**
   * Calls `sink` for each event in order. Resolves when `signal` aborts or when the watch ends (timeout, or 410 as an ERROR
   * event). Rejects if the watch cannot start.
   */
  watch(ref: ResourceRef, options: WatchOptions, sink: WatchSink, signal: AbortSignal): Promise<void>;
  /** With a `subresource` such as 'binding', the body has the subresource's kind and so has the result. */
  create(
    ref: ResourceRef,
    namespace: string | undefined,
    object: KubeObject,
    options?: WriteOptions & { name?: string; subresource?: string },
  ): Promise<KubeObject>;
  /** `subresource` 'status' replaces only the status. A resourceVersion in the object is a precondition (409). */
  update(ref: ResourceRef, object: KubeObject, options?: WriteOptions & { subresource?: string }): Promise<KubeObject>;
  patch(
    ref: ResourceRef,
    namespace: string | undefined,
    name: string,
    type: PatchType,
    body: unknown,
    options?: WriteOptions & {
      subresource?: string;
      /** Called if a server-side apply creates the object. */
      onCreated?: () => void;
    },
  ): Promise<KubeObject>;
  /** Returns the terminating object, or the last state of the deleted object. */
  delete(
    ref: ResourceRef,
    namespace: string | undefined,
    name: string,
    options?: DeleteOptions,
  ): Promise<KubeObject | Status>;
  deleteCollection(ref: ResourceRef, options: ListOptions & DeleteOptions): Promise<KubeList>;
  /**
   * Calls the listener with each object that the backend returned earlier and has now dropped from its cache. Returns a function
   * that removes the listener. Absent if the backend does not cache objects.
   */
  onDrop?(listener: (object: KubeObject) => void): () => void;
}
