/**
 * The interface of admission plugins. The registry calls them, in the order of the list in plugins.ts, on every path on which objects are
 * written: create, update, all patches, server-side apply, subresources, delete, and deletecollection for each object.
 *
 * Order of a create: decode, defaults, admit, prepare, the rules of the kind, allocate, validate, write. An update is the same, and
 * everything is repeated from the newest state after a conflict with another writer. A delete is only validated.
 *
 * Invariants:
 *  1. A plugin must have no side effects that outlive the request, because a request may be a dry run, may be repeated, or may fail later.
 *     A plugin ends all its reservations.
 *  2. A plugin that waits holds up only its own request: while it waits, the request occupies neither the slot for long work nor room
 *     among the bodies of requests that are processed. The requests of clients that wait have limits of their own (http/bounds/limits.ts),
 *     beyond which a request that would have to wait gets 429 TooManyRequests.
 *  3. A plugin that waits ends its wait when the signal of the request's context aborts. Then the request has already ended, but the
 *     plugin still keeps its object in memory.
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

/** An operation on objects of a kind, or on one of their subresources. handles() decides which targets a plugin gets. */
export interface AdmissionTarget {
  kind: KindDefinition;
  /** The name of the subresource; empty for the main resource. */
  subresource: string;
  operation: Operation;
}

export interface AdmissionRequest extends AdmissionTarget {
  groupResource: GroupResource;
  /** The context of the request, such as the user and the audit annotations. */
  context: RequestContext;
  namespace: string;
  /** The name of the object; empty while the name of a new object has not been generated. */
  name: string;
  /**
   * The object after the request; for a create of a subresource such as `binding`, the body of the request. Undefined for a delete.
   * Only admit() may change it.
   */
  object: KubeObject | undefined;
  /** The object before the request, which is shared and must not be changed; undefined for a create. */
  old: KubeObject | undefined;
  dryRun: boolean;
  /** Sends a warning to the client. */
  warn(text: string): void;
}

/**
 * A condition for the write of another object: the object with `key` must have `modRevision`, or must not exist if `modRevision` is 0.
 * `object`: a new state to write in the same transaction. `deleted`: the object is deleted in the same transaction.
 */
export interface Alongside extends Compare {
  object?: KubeObject;
  deleted?: true;
}

/** Checks and changes the objects of requests before they are written. Each function throws an ApiError to reject the request. */
export interface AdmissionPlugin {
  /** The name of the plugin, which is upstream's name if upstream has the plugin. */
  readonly name: string;
  handles(target: AdmissionTarget): boolean;
  /** Checks the object of a create or an update before this plugin or a later one changes it. */
  check?(request: AdmissionRequest): void | Promise<void>;
  /** Changes the object, or waits for other objects. */
  admit?(request: AdmissionRequest): void | Promise<void>;
  /** Checks the final object. */
  validate?(request: AdmissionRequest): void | Promise<void>;
  /**
   * For the main resource: sets values in the object that no other object may have, and reserves these values. Returns a function that ends
   * the reservation; called after the write.
   */
  allocate?(request: AdmissionRequest): () => void;
  /** Returns conditions that must hold when a new object is written. Called again if the write fails because a condition does not hold. */
  guards?(request: AdmissionRequest): Compare[];
  /**
   * Returns the other objects on which a create, update or deletion of the object depends, or which it changes. Called directly before each
   * attempt to write, also in a dry run. No other transaction can be submitted between the call and the write, because both are in one turn
   * of the event loop.
   */
  alongside?(request: AdmissionRequest): Alongside[];
}

/** The parts of the API server that plugins use. */
export interface AdmissionServices {
  cache: WatchCache;
  store: Store;
  timers: Timers;
  randomBytes: (size: number) => Uint8Array;
  /** The ranges of the cluster IPs of Services, one for each IP family, with a comma between them. */
  serviceCidr: string;
  authorizer: Authorizer;
}

export type PluginFactory = (services: AdmissionServices) => AdmissionPlugin;
