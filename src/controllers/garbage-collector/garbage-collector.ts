/**
 * Deletes objects whose owners no longer exist, and carries out the propagation policies of deletes: with `orphan`, removes the references
 * to an object before the object is removed; with `foregroundDeletion`, deletes the dependents first.
 *
 * Reads: the metadata of the objects of all kinds that have dependents or owners. Writes: these objects (delete; ownerReferences,
 * finalizers), the condition DeletionReason of Pods with defer containers, events.
 * Invariants:
 *  1. No object is deleted unless the API server has just shown that each of its owners is absent or waits for its dependents, and that
 *     the references to the owners have not changed since.
 *  2. Nothing is examined before all kinds have been listed, because the dependents of an object may be of any kind.
 *  3. Every step can be repeated: a garbage collector that starts after a crash examines all objects with a reference to an owner that is
 *     not known to exist, and all objects that wait for their dependents.
 * Source: pkg/controller/garbagecollector of v1.33 (behavior and wording), which reads the API server for every reference.
 */
import type { KindCatalog } from '../../api/catalog.ts';
import type { KindDefinition } from '../../api/kind.ts';
import { createEventRecorder, type EventRecorder } from '../../client/events.ts';
import type { Informer } from '../../client/informer.ts';
import { createWorkQueue, type WorkQueue } from '../../client/work-queue.ts';
import { type KubeObject, type OwnerReference, type ResourceRef, uidOf } from '../../machinery/meta.ts';
import { isApiError } from '../../machinery/status.ts';
import { onAbort } from '../../platform/on-abort.ts';
import type { ControllerOptions } from '../controller.ts';
import { type Decision, decide, type OwnerState } from './decision.ts';
import { type Consequences, DependencyGraph, deletionState, type GraphNode, isIrrelevant, ORPHAN } from './graph.ts';
import {
  deleteUnchanged,
  isCondemned,
  orphan,
  removeFinalizer,
  removeOwners,
  reprieve,
  type Target,
  unblock,
} from './writes.ts';

const refOf = ({ group, version, plural }: KindDefinition): ResourceRef => ({ group, version, resource: plural });
const apiVersionOf = ({ group, version }: KindDefinition): string => (group === '' ? version : `${group}/${version}`);

type Owner = { uid: string; state: OwnerState };

/** Whether the garbage collector deletes objects of the kind or their dependents. */
const isFollowed = (kind: KindDefinition): boolean =>
  kind.propagation !== 'unsupported' && kind.storage === undefined && isReadable(kind) && !kind.uncached;

const isReadable = (kind: KindDefinition): boolean => kind.createOnly === undefined && kind.computed === undefined;

export interface GarbageCollectorOptions extends ControllerOptions {
  catalog: KindCatalog;
}

/** Resolves once the objects of all kinds have been listed. */
export async function startGarbageCollector(options: GarbageCollectorOptions): Promise<void> {
  await new GarbageCollector(options).start();
}

class GarbageCollector {
  readonly #options: GarbageCollectorOptions;
  readonly #graph = new DependencyGraph();
  readonly #queue: WorkQueue;
  readonly #events: EventRecorder;
  readonly #followed = new Map<KindDefinition, { stop: AbortController; informer: Informer<KubeObject> }>();
  /** Resolves once all followed kinds have been listed. */
  #listed: Promise<unknown> = Promise.resolve();
  #hasListed = false;

  constructor(options: GarbageCollectorOptions) {
    const { client, timers, log, signal } = options;
    this.#options = options;
    const process = (uid: string): Promise<void> => this.#examine(uid);
    this.#queue = createWorkQueue({ name: 'garbage-collector', process, log, timers, signal });
    this.#events = createEventRecorder(client, { component: 'garbage-collector-controller', timers, log, signal });
  }

  async start(): Promise<void> {
    const { catalog, signal } = this.#options;
    const onRemove = (kind: KindDefinition): void => {
      this.#followed.get(kind)?.stop.abort();
      if (this.#followed.delete(kind)) this.#graph.removeKind(apiVersionOf(kind), kind.kind);
    };
    onAbort(
      signal,
      catalog.onAdd(() => this.#followNew()),
    );
    onAbort(signal, catalog.onRemove(onRemove));
    this.#followNew();
    await this.#listed;
  }

  /** Follows new kinds. When all kinds are listed, queues the objects that must be examined. */
  #followNew(): void {
    const { catalog, signal } = this.#options;
    const fresh = catalog.kinds.filter((kind) => isFollowed(kind) && !this.#followed.has(kind));
    for (const kind of fresh) this.#follow(kind);
    const listed = Promise.all([this.#listed, ...fresh.map((kind) => this.#followed.get(kind)?.informer.synced)]);
    this.#listed = listed;
    void listed.then(() => {
      if (this.#listed !== listed || signal.aborted) return;
      this.#hasListed = true;
      this.#apply(this.#graph.all());
    });
  }

  #follow(kind: KindDefinition): void {
    const { informers, signal } = this.#options;
    const stop = new AbortController();
    const ref = refOf(kind);
    const graph = this.#graph;
    const until = AbortSignal.any([signal, stop.signal]);
    const informer = informers.follow<KubeObject>(
      ref,
      { signal: until },
      {
        added: (object) => {
          this.#apply(graph.put(object));
          if (isCondemned({ ref, object })) this.#queue.add(uidOf(object));
        },
        updated: (object, old) => {
          if (!isIrrelevant(object, old)) this.#apply(graph.put(object));
        },
        deleted: (object) => this.#apply(graph.remove(uidOf(object))),
      },
    );
    this.#followed.set(kind, { stop, informer });
  }

  #apply({ examine, foreign }: Consequences): void {
    if (!this.#hasListed) return;
    for (const uid of examine) this.#queue.add(uid);
    for (const { dependent, owner } of foreign) this.#reportForeign(dependent, owner);
  }

  async #examine(uid: string): Promise<void> {
    await this.#listed;
    const node = this.#graph.get(uid);
    const kind = node === undefined ? undefined : this.#served(node);
    if (node === undefined || kind === undefined) return;
    const ref = refOf(kind);
    const object = await this.#read(ref, node.namespace, node.name);
    if (object === undefined || uidOf(object) !== uid) return;
    const state = deletionState(object);
    const owners = state === 'living' ? await this.#classify(node, object.metadata.ownerReferences ?? []) : [];
    const dependents = this.#graph.dependentsOf(uid);
    const isInCycle = state === 'deletingDependents' && this.#graph.isInCycle(uid);
    const decision = decide({ metadata: object.metadata, state, owners, dependents, isInCycle });
    try {
      await this.#execute({ ref, object }, decision);
    } catch (error) {
      if (isApiError(error, 'NotFound')) return;
      if (!isApiError(error, 'Conflict')) throw error;
      this.#queue.add(uid);
    }
  }

  async #execute(target: Target, decision: Decision): Promise<void> {
    const { client, timers, log } = this.#options;
    const { namespace, name } = target.object.metadata;
    switch (decision.action) {
      case 'keep':
        return reprieve(client, target, timers.now());
      case 'removeOwners':
        await removeOwners(client, target, decision.uids);
        return reprieve(client, target, timers.now());
      case 'delete':
        log.debug('garbage-collector: deleting an object', { resource: target.ref.resource, namespace, name });
        return deleteUnchanged(client, target, decision.propagationPolicy, timers.now());
      case 'unblock':
        return unblock(client, target);
      case 'await':
        for (const uid of decision.uids) this.#queue.add(uid);
        return;
      case 'orphan':
        for (const { uid } of decision.dependents) await this.#orphan(uid, uidOf(target.object));
        return removeFinalizer(client, target, ORPHAN);
      case 'removeFinalizer':
        return removeFinalizer(client, target, decision.finalizer);
    }
  }

  async #orphan(uid: string, owner: string): Promise<void> {
    const dependent = this.#graph.get(uid);
    const kind = dependent === undefined ? undefined : this.#served(dependent);
    if (dependent !== undefined && kind !== undefined)
      await orphan(this.#options.client, refOf(kind), dependent, owner);
  }

  async #classify(node: GraphNode, references: readonly OwnerReference[]): Promise<Owner[]> {
    const owners: Owner[] = [];
    for (const reference of references) {
      const isSolid = this.#graph.isSolid(node, reference);
      owners.push({ uid: reference.uid, state: isSolid ? 'solid' : await this.#stateOf(node, reference) });
    }
    return owners;
  }

  async #stateOf(node: GraphNode, reference: OwnerReference): Promise<OwnerState> {
    const kind = this.#served(reference);
    if (kind === undefined || !isReadable(kind) || (kind.namespaced && node.namespace === undefined)) return 'unknown';
    const owner = await this.#read(refOf(kind), kind.namespaced ? node.namespace : undefined, reference.name);
    if (owner === undefined || uidOf(owner) !== reference.uid) return 'absent';
    if (this.#graph.get(reference.uid) === undefined) void this.#examineOnceKnown(node.uid, kind, owner);
    return deletionState(owner) === 'deletingDependents' ? 'waiting' : 'solid';
  }

  /**
   * Waits until the informer has received the owner. If the owner has been deleted by then, examines the dependent again. Otherwise the
   * graph will report the deletion of the owner.
   */
  async #examineOnceKnown(dependent: string, kind: KindDefinition, owner: KubeObject): Promise<void> {
    const informer = this.#followed.get(this.#options.catalog.storedAs(kind))?.informer;
    await informer?.reached(owner.metadata.resourceVersion);
    if (informer !== undefined && this.#graph.get(uidOf(owner)) === undefined) this.#queue.add(dependent);
  }

  #served({ apiVersion, kind }: { apiVersion: string; kind: string }): KindDefinition | undefined {
    const [version = '', group = ''] = apiVersion.split('/').reverse();
    return this.#options.catalog.named(group, version, kind);
  }

  async #read(ref: ResourceRef, namespace: string | undefined, name: string): Promise<KubeObject | undefined> {
    try {
      return await this.#options.client.api.get(ref, namespace, name);
    } catch (error) {
      if (isApiError(error, 'NotFound')) return undefined;
      throw error;
    }
  }

  #reportForeign({ apiVersion, kind, namespace = '', name, uid }: GraphNode, owner: OwnerReference): void {
    const shown = `[${owner.apiVersion}/${owner.kind}, namespace: ${namespace}, name: ${owner.name}, uid: ${owner.uid}]`;
    const dependent = { apiVersion, kind, metadata: { namespace: namespace || undefined, name, uid } };
    const message = `ownerRef ${shown} does not exist in namespace "${namespace}"`;
    this.#events.event(dependent, 'Warning', 'OwnerRefInvalidNamespace', message);
  }
}
