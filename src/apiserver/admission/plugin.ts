/**
 * The interface of admission plugins. Order of a create: decode, defaults, admit, prepare, the rules of the kind, allocate, validate,
 * write. After a conflict, an update starts over from the newest state.
 *
 * Invariants:
 *  1. A plugin must have no side effects that outlive the request, because a request may be a dry run, may be repeated, or may fail later.
 *  2. While a plugin waits, only its own request is held up: the request does not occupy the slot of longWork() (work-in-turns.ts).
 *  3. A plugin must end its wait when the signal of the request's context aborts. Until then, the object stays in memory.
 *
 * Source: "Admission Control in Kubernetes" of v1.33, k8s.io/apiserver/pkg/admission (behavior).
 */
import type { KindDefinition } from '../../api/kind.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import type { GroupResource } from '../../machinery/status.ts';
import type { Timers } from '../../platform/platform.ts';
import type { Authorizer } from '../../ports/authorizer.ts';
import type { RequestContext } from '../../ports/request.ts';
import type { Compare, Store } from '../../store/store.ts';
import type { WatchCache } from '../cache/watch-cache.ts';

export type Operation = 'CREATE' | 'UPDATE' | 'DELETE';

export interface AdmissionTarget {
  kind: KindDefinition;
  /** Empty for the main resource. */
  subresource: string;
  operation: Operation;
}

export interface AdmissionRequest extends AdmissionTarget {
  groupResource: GroupResource;
  context: RequestContext;
  namespace: string;
  /** Empty while the name of a new object has not been generated. */
  name: string;
  /**
   * The object after the request; for a create of a subresource such as `binding`, the body of the request. Undefined for a delete. Only
   * admit() and allocate() may change it.
   */
  object: KubeObject | undefined;
  /** The object before the request, which is shared and must not be changed. Undefined for a create. */
  old: KubeObject | undefined;
  dryRun: boolean;
  warn(text: string): void;
}

/**
 * A condition for the write of another object: the object with `key` must have `modRevision`, or must not exist if `modRevision` is 0.
 * `object` and `deleted` write or delete the other object in the same transaction.
 */
export interface Alongside extends Compare {
  object?: KubeObject;
  deleted?: true;
}

/** Each function throws an ApiError to reject the request. */
export interface AdmissionPlugin {
  /** Upstream's name if upstream has the plugin. */
  readonly name: string;
  handles(target: AdmissionTarget): boolean;
  /** Checks the object of a create or an update before this plugin or a later one changes it. */
  check?(request: AdmissionRequest): void | Promise<void>;
  admit?(request: AdmissionRequest): void | Promise<void>;
  validate?(request: AdmissionRequest): void | Promise<void>;
  /**
   * Sets values in the object that no other object may have, and reserves them. Not called for subresources. The returned function ends the
   * reservation after the write.
   */
  allocate?(request: AdmissionRequest): () => void;
  /** Returns conditions for the write of a new object. Called again if the write fails because a condition does not hold. */
  guards?(request: AdmissionRequest): Compare[];
  /**
   * Returns the other objects on which the write depends or which it changes. Called directly before each attempt to write, even in a dry
   * run.
   */
  alongside?(request: AdmissionRequest): Alongside[];
}

export interface AdmissionServices {
  cache: WatchCache;
  store: Store;
  timers: Timers;
  randomBytes: (size: number) => Uint8Array;
  /** Comma-separated ranges of cluster IPs, one for each IP family. */
  serviceCidr: string;
  authorizer: Authorizer;
}

export type PluginFactory = (services: AdmissionServices) => AdmissionPlugin;
