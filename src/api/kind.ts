/**
 * What a kind is: everything that the API server, the command line and the tests know of it, as data and pure
 * functions. Each kind is a folder (core/v1/pod/ …) whose index.ts exports one KindDefinition; kinds.ts lists them.
 *
 * Order of a write (source: upstream's rest.BeforeCreate and BeforeUpdate, behaviour):
 *   decode against the schema -> defaults -> prepare -> validate -> store
 */

import type { FieldError } from '../machinery/field-error.ts';
import type { KubeObject, ResourceRef } from '../machinery/meta.ts';
import type { Millis } from '../machinery/time.ts';
import type { DeleteOptions } from '../ports/backend.ts';
import type { NodeUsage } from '../ports/node-reports.ts';

export interface TableColumn {
  name: string;
  type: 'string' | 'integer' | 'date';
  format?: 'name' | '';
  description: string;
  /** 0: always shown; 1 and more: with -o wide */
  priority: number;
}

export interface WriteContext {
  now: Millis;
  /** Tells the client of what is taken otherwise than it was written. */
  warn?(sentence: string): void;
}

export interface EventDraft {
  type: 'Normal' | 'Warning';
  reason: string;
  message: string;
  /** spec.deferContainers{NAME} */
  fieldPath?: string;
}

/** A subresource that reads and writes the object itself (status) or one of another kind (binding). */
export interface SubresourceDefinition<T extends KubeObject = KubeObject> {
  /** The kind of the body, as 'v1/Binding'; absent: the object's own. */
  bodyKind?: { group: string; version: string; kind: string; schema: string };
  verbs: readonly ('get' | 'update' | 'patch' | 'create')[];
  /** A client upgrades its connection to a stream: the kind of the options, which come in the query, as PodExecOptions. */
  connects?: string;
  /** A write of it ends the object, or brings its end nearer: it succeeds even if there is no room for objects. Its growth is bounded. */
  ends?: boolean;
  /** What follows its name in the path is passed on. */
  subpaths?: boolean;
  /** Makes the new object of the old one and the body; throws ApiError. Pure. */
  apply?(old: T, body: KubeObject, context: WriteContext): T;
  validate?(object: T, old: T): FieldError[];
  /** What the client gets back; absent: the object. */
  answer?(object: T, body: KubeObject): KubeObject;
  /** The Events that report the change, on the object. `user`: the name of the user who asked. */
  events?(object: T, old: T, user: string): EventDraft[];
}

export interface KindDefinition<T extends KubeObject = KubeObject> {
  group: string;
  version: string;
  kind: string;
  /** pods */
  plural: string;
  /** pod */
  singular: string;
  shortNames: readonly string[];
  /** ['all'] for what `kubectl get all` shows */
  categories: readonly string[];
  namespaced: boolean;
  /** Its objects tell of a namespace, and need none: they can be written while it ends and after it is gone, and stay. */
  outlivesNamespace?: boolean;
  /** The type's name in the generated field table (generated/schema.json). */
  schema: string;
  /** Kinds that are another form of one stored kind (events.k8s.io) name its storage and convert. */
  storage?: { plural: string; toStored(object: KubeObject): KubeObject; fromStored(object: KubeObject): KubeObject };
  /** Only `create` (Binding). */
  createOnly?: boolean;
  /** Its objects are many, large and seldom read: each read goes to the store, and none of them is held in memory. */
  uncached?: boolean;
  /**
   * Its objects are not stored: each read makes them of objects of another resource, and of what their node uses. It can
   * only be read.
   */
  computed?: {
    from: ResourceRef;
    /** undefined: there is nothing to tell of it. */
    make(source: KubeObject, usage: NodeUsage): T | undefined;
  };

  /**
   * On a PUT, before the defaults: takes over from `old` the fields that clients leave out whose types do not have them.
   * Mutates `object`. A patch names what it removes.
   */
  keepUnsent?(object: T, old: T): void;
  /** Fills in defaults in the (own, mutable) object; `old`: the object that it is to replace. */
  defaults?(object: T, old?: T): void;
  /** On create, after defaults: drops what clients may not set (status), sets generation. Mutates. */
  prepareForCreate?(object: T, context: WriteContext): void;
  /** On update of the main resource: keeps what it may not change (status), bumps generation. Mutates `object`. */
  prepareForUpdate?(object: T, old: T, context: WriteContext): void;
  validateCreate(object: T): FieldError[];
  validateUpdate(object: T, old: T): FieldError[];
  /** Sentences for the Warning header; `old`: the object that it replaces. */
  warnings?(object: T, old?: T): string[];

  /** Keyed by name: status, binding, log, … A subresource without apply() is a stream that the API server serves itself. */
  subresources: Readonly<Record<string, SubresourceDefinition<T>>>;

  /**
   * What a delete does first. `now`: the object goes at once (subject to finalizers). Otherwise the object is written with
   * deletionTimestamp = now + graceSeconds and stays until a delete with grace 0. Called again by a later delete.
   */
  deletion?(
    object: T,
    options: DeleteOptions,
    context: WriteContext,
  ): { now: true } | { now: false; graceSeconds: number };

  /** A delete answers with the object as it was, not with a Status. */
  returnsDeletedObject?: boolean;

  /** Field selectors that the kind has besides metadata.name and metadata.namespace. */
  selectableFields?(object: T): Record<string, string>;

  columns: readonly TableColumn[];
  /** The cells of one row, in the order of columns. */
  row(object: T, context: WriteContext): (string | number)[];
}
