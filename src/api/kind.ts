/**
 * The definition of a kind: everything that the API server, the command line and the tests need to know about it, as data and
 * pure functions. Each kind is a folder (core/v1/pod/ …) whose index.ts exports a KindDefinition; kinds.ts lists them.
 *
 * Order of a write (source: upstream's rest.BeforeCreate and BeforeUpdate, behavior):
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
  /** 0: always shown; 1 or more: shown with -o wide. */
  priority: number;
}

export interface WriteContext {
  now: Millis;
  /** Sends a warning to the client if a field is not interpreted as written. */
  warn?(sentence: string): void;
}

export interface EventDraft {
  type: 'Normal' | 'Warning';
  reason: string;
  message: string;
  /** spec.deferContainers{NAME} */
  fieldPath?: string;
}

/** A subresource that reads and writes the object itself (status) or accepts a body of another kind (binding). */
export interface SubresourceDefinition<T extends KubeObject = KubeObject> {
  /** The kind of the body, such as v1/Binding; absent if it is the kind of the object. */
  bodyKind?: { group: string; version: string; kind: string; schema: string };
  verbs: readonly ('get' | 'update' | 'patch' | 'create')[];
  /** For subresources whose clients upgrade to a stream: the kind of the options in the query, such as PodExecOptions. */
  connects?: string;
  /** Whether writes delete the object or shorten its termination. They succeed even if the store is full, because they add little. */
  ends?: boolean;
  /** Whether the path after the name of the subresource is passed on. */
  subpaths?: boolean;
  /** Computes the new object from the old one and the body; throws ApiError. Pure. */
  apply?(old: T, body: KubeObject, context: WriteContext): T;
  validate?(object: T, old: T): FieldError[];
  /** The response to the client; defaults to the object. */
  response?(object: T, body: KubeObject): KubeObject;
  /** Events on the object that report the change. `user`: the name of the user who sent the request. */
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
  /** ['all'] for kinds that `kubectl get all` shows. */
  categories: readonly string[];
  namespaced: boolean;
  /** Whether objects can be written while their namespace is terminating and after it is deleted, and remain afterwards. */
  outlivesNamespace?: boolean;
  /** The type's name in the generated field table (generated/schema.json). */
  schema: string;
  /** For kinds that are another form of a stored kind (events.k8s.io): the stored kind and the conversion. */
  storage?: { plural: string; toStored(object: KubeObject): KubeObject; fromStored(object: KubeObject): KubeObject };
  /** Whether `create` is the only verb (Binding). */
  createOnly?: boolean;
  /** For many large objects that are rarely read: each read goes to the store, and no object is kept in memory. */
  uncached?: boolean;
  /**
   * For read-only kinds whose objects are not stored: each read computes them from the objects of another resource and the
   * resource usage of their node.
   */
  computed?: {
    from: ResourceRef;
    /** Returns undefined if there is no usage for the object. */
    make(source: KubeObject, usage: NodeUsage): T | undefined;
  };

  /**
   * Called on PUT before the defaults: copies from `old` the fields that older clients omit because their types lack them.
   * Mutates `object`. Not called on patches, which name the fields that they remove.
   */
  keepUnsent?(object: T, old: T): void;
  /** Sets defaults in the mutable `object`; `old`: the object that it replaces. */
  defaults?(object: T, old?: T): void;
  /** On create, after the defaults: drops fields that clients may not set (status), sets the generation. Mutates `object`. */
  prepareForCreate?(object: T, context: WriteContext): void;
  /** On update of the main resource: restores fields that it may not change (status), increments the generation. Mutates `object`. */
  prepareForUpdate?(object: T, old: T, context: WriteContext): void;
  validateCreate(object: T): FieldError[];
  validateUpdate(object: T, old: T): FieldError[];
  /** Texts for the Warning header; `old`: the object that is replaced. */
  warnings?(object: T, old?: T): string[];

  /** Keyed by name: status, binding, log, … The API server itself implements subresources without apply(). */
  subresources: Readonly<Record<string, SubresourceDefinition<T>>>;

  /**
   * What a delete does first. `now`: the object is deleted immediately (subject to finalizers). Otherwise the object is written
   * with deletionTimestamp = now + graceSeconds and stays until a delete with grace period 0. Called again for each later delete.
   */
  deletion?(
    object: T,
    options: DeleteOptions,
    context: WriteContext,
  ): { now: true } | { now: false; graceSeconds: number };

  /** Whether a delete returns the deleted object instead of a Status. */
  returnsDeletedObject?: boolean;

  /** Fields for field selectors, besides metadata.name and metadata.namespace. */
  selectableFields?(object: T): Record<string, string>;

  columns: readonly TableColumn[];
  /** The cells of a row, in the order of `columns`. */
  row(object: T, context: WriteContext): (string | number)[];
}
