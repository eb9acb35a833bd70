/**
 * The definition of a kind: the data and functions with which the API server, the command line and the tests handle its objects.
 *
 * Order of a write, without the admission steps of the API server (source: upstream's rest.BeforeCreate and BeforeUpdate, behavior): decode
 * against the schema -> defaults -> prepare -> validate -> store.
 */

import type { FieldError } from '../machinery/field-error.ts';
import type { JsonObject } from '../machinery/json-value.ts';
import type { KubeObject, ResourceRef } from '../machinery/meta.ts';
import type { Millis } from '../machinery/time.ts';
import type { DeleteOptions } from '../ports/backend.ts';
import type { NodeUsage } from '../ports/node-reports.ts';
import type { Verb } from '../ports/request.ts';
import type { Reviewer } from '../ports/reviews.ts';
import type { TypeLines } from './facts/facts.ts';

export interface TableColumn {
  name: string;
  type: 'string' | 'integer' | 'date';
  format?: 'name' | '';
  description: string;
  /** 0: kubectl always shows the column; 1 or more: only with -o wide. */
  priority: number;
}

export interface WriteContext {
  now: Millis;
  /** Sends a warning to the client. Only set on create, if the client gets warnings. */
  warn?(sentence: string): void;
  /** Whether a node sent the request. Only set on delete. */
  byNode?: boolean;
}

export interface EventDraft {
  type: 'Normal' | 'Warning';
  reason: string;
  message: string;
  /** The part of the object that the Event is about, such as `spec.deferContainers{NAME}`. */
  fieldPath?: string;
}

/** A part of the object (status), an operation with a body of another kind (binding), or a log or stream (exec). */
export interface SubresourceDefinition<T extends KubeObject = KubeObject> {
  /**
   * The kind of the request's body, such as v1/Binding; absent if the body has the kind of the object, or if there is no body.
   * `olderVersions`: other versions of the group that the body may have, because the kind is the same in them.
   */
  bodyKind?: { group: string; version: string; kind: string; schema: string; olderVersions?: readonly string[] };
  verbs: readonly ('get' | 'update' | 'patch' | 'create' | 'delete')[];
  /** For subresources that are connections (streams and proxies): the kind of the query's options, such as PodExecOptions. */
  connects?: string;
  /** A write deletes the object or shortens its termination. The limit on the memory of all objects does not apply to such writes. */
  ends?: boolean;
  /** The API server implements the operation, because it needs other objects or keys. `evict`: the object is deleted after apply(). */
  operation?: 'evict' | 'issueToken' | 'log' | 'proxyToPod' | 'proxyToService' | 'proxyToNode';
  /** Whether the URL path may continue after the subresource's name, as in `nodes/NAME/proxy/stats/summary`. */
  subpaths?: boolean;
  /**
   * For subresources that are documents of the bodyKind, computed from the object (Scale). The response is the document, and patches apply
   * to the document.
   */
  document?: {
    read(object: T): KubeObject;
    /** The fields that the document and the object have in common, as a set of fields of managedFields. */
    fields: JsonObject;
    /** As in KindDefinition. */
    columns: readonly TableColumn[];
    row(document: KubeObject, context: WriteContext): (string | number)[];
  };
  /** Computes the new object from the old object and the request's body. Throws ApiError to reject the request. Must be pure. */
  apply?(old: T, body: KubeObject, context: WriteContext): T;
  validate?(object: T, old: T): FieldError[];
  /** The response to a PUT; by default, the new object. */
  response?(object: T, body: KubeObject): KubeObject;
  /** Returns the Events that report a change of the object by an update or patch. `user`: the name of the user that sent the request. */
  events?(object: T, old: T, user: string): EventDraft[];
}

export interface KindDefinition<T extends KubeObject = KubeObject> {
  group: string;
  version: string;
  kind: string;
  /** The plural name in URL paths, such as `pods`. */
  plural: string;
  /** The singular name that kubectl accepts, such as `pod`; empty if there is none. */
  singular: string;
  shortNames: readonly string[];
  /** `['all']` for kinds that `kubectl get all` shows. */
  categories: readonly string[];
  namespaced: boolean;
  /** Whether objects remain after the deletion of their namespace, and can be written during and after this deletion. */
  outlivesNamespace?: boolean;
  /** The full name of the kind's type (see facts/facts.ts), such as `io.k8s.api.core.v1.Pod`. */
  schema: string;
  /** Types that the kind adds to the facts, in the package of its own type. They exist while a catalog serves the kind. */
  types?: TypeLines;
  /**
   * For kinds whose objects are stored as another kind (Events of events.k8s.io, or another version of the kind): that kind, and the
   * conversions.
   */
  storage?: {
    resource: ResourceRef;
    toStored(object: KubeObject): KubeObject;
    fromStored(object: KubeObject): KubeObject;
  };
  /**
   * For kinds whose objects are never stored; `create` is the only verb. With `subresource`, a create changes the object with the same name
   * (Binding). With `review`, the response is the object that `review` returns (TokenReview).
   */
  createOnly?: { resource: ResourceRef; subresource: string } | { review(question: T, reviewer: Reviewer): Promise<T> };
  withoutVerbs?: readonly Verb[];
  /**
   * Each read goes to the store: the cache keeps no objects except those in recent watch events. This suits many large objects that are
   * rarely read.
   */
  uncached?: boolean;
  /**
   * For read-only kinds whose objects are not stored. `objects`: all objects. `make`: computes an object from an object of the resource
   * `from` and from the resource usage that the node reports.
   */
  computed?:
    | { objects: readonly T[] }
    | {
        from: ResourceRef;
        /** Returns undefined if the node reports no usage for `source`. */
        make(source: KubeObject, usage: NodeUsage): T | undefined;
      };
  /** The warning that clients get with each response if the kind is deprecated. */
  deprecation?: string;

  /**
   * Called on PUT of the main resource before the defaults: copies fields from `old` to `object` that some clients omit because their types
   * lack the fields. Not called on patches, because a patch names the fields that it removes.
   */
  keepUnsent?(object: T, old: T): void;
  /** `old`: the object that is replaced; undefined on create. */
  defaults?(object: T, old?: T): void;
  /** Called on create after the defaults. Mutates `object`: drops fields that clients may not set (status), sets the generation. */
  prepareForCreate?(object: T, context: WriteContext): void;
  /**
   * Called on an update of the main resource. Mutates `object`: restores fields that such an update may not change (status), and increments
   * the generation if the spec has changed.
   */
  prepareForUpdate?(object: T, old: T, context: WriteContext): void;
  validateCreate(object: T): FieldError[];
  validateUpdate(object: T, old: T): FieldError[];
  /**
   * Called on create, and on updates of the main resource, after the validation: brings a valid `object` into the form in which it is
   * stored.
   */
  canonicalize?(object: T): void;
  /** Warnings about a valid object, for Warning headers of the response. `old`: the object that is replaced; undefined on create. */
  warnings?(object: T, old?: T): string[];

  /** The API server itself implements subresources without apply(). */
  subresources: Readonly<Record<string, SubresourceDefinition<T>>>;

  /**
   * Decides whether a delete request is graceful; absent: no delete is graceful. `now: true`: the object is deleted immediately, unless it
   * has finalizers. `now: false`: the first such request sets the deletionTimestamp to now + graceSeconds, and later ones can shorten the
   * grace period. The object stays until this function returns `now: true` for a later delete or update.
   */
  deletion?(
    object: T,
    options: DeleteOptions,
    context: WriteContext,
  ): { now: true } | { now: false; graceSeconds: number };

  /**
   * How a deletion treats the dependents of an object, which name it in their ownerReferences, if neither the request nor a finalizer
   * decides. By default, the garbage collector deletes them. `warning`: the warning to clients that send no policy. `unsupported`: the
   * garbage collector ignores the kind.
   */
  propagation?: { byDefault: 'Orphan'; warning?: string } | 'unsupported';

  /** Returns the object as it is while its deletion is pending. Called when a delete request sets the deletionTimestamp. */
  terminating?(object: T): T;

  /** Whether the response to an immediate deletion is the deleted object instead of a Status. */
  returnsDeletedObject?: boolean;

  /** Returns the values of the fields that field selectors support besides metadata.name and metadata.namespace, by path. */
  selectableFields?(object: T): Record<string, string>;
  /**
   * The paths of the selectable fields by which the cache indexes objects, those with the fewest objects per value first. Lists of uncached
   * kinds, and kinds that are stored as another kind, have no index.
   */
  indexedFields?: readonly string[];

  columns: readonly TableColumn[];
  /** In the order of `columns`. */
  row(object: T, context: WriteContext): (string | number)[];
}
