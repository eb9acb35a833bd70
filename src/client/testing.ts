/** For unit tests of code that uses the client: a backend in memory, timers that the test advances, a silent log. */

import { matchesFields, parseFieldSelector } from '../machinery/field-selector.ts';
import { parseLabelSelector } from '../machinery/labels.ts';
import type { KubeObject, ResourceRef } from '../machinery/meta.ts';
import { applyMergePatch } from '../machinery/patch/merge-patch.ts';
import { type ApiError, alreadyExists, expired, notFound } from '../machinery/status.ts';
import type { Log, Millis, Timers } from '../platform/platform.ts';
import { createTimerHeap } from '../platform/timer-heap.ts';
import type { ListOptions, ResourceBackend, WatchEvent, WatchOptions } from '../ports/backend.ts';

export const silentLog: Log = {
  debug() {},
  info() {},
  warn() {},
  error() {},
  child: () => silentLog,
};

export interface TestTimers extends Timers {
  /** Moves the time forward and calls the timers that are due, in order. */
  advance(millis: Millis): void;
}

export function testTimers(start: Millis = Date.UTC(2026, 0, 31)): TestTimers {
  const heap = createTimerHeap();
  let now = start;
  return {
    now: () => now,
    at(time, callback) {
      const entry = heap.add(time, callback);
      return { cancel: () => heap.remove(entry) };
    },
    advance(millis) {
      now += millis;
      for (const callback of heap.takeDue(now)) callback();
    },
  };
}

export interface MemoryBackend extends ResourceBackend {
  /** All calls so far, each as text, such as `create pods/binding a/x`. */
  readonly calls: string[];
  /** Makes the next call whose text begins with `begin` fail with the error. */
  failNext(begin: string, error: ApiError | Error): void;
  /** Ends all watches. With `lost`, a new watch from an older revision fails with 410. */
  endWatches(options?: { lost: boolean }): void;
  /** Writes as another client would: not in `calls`, and not subject to failNext(). */
  set(ref: ResourceRef, object: KubeObject): KubeObject;
  remove(ref: ResourceRef, namespace: string | undefined, name: string): void;
  objects(ref: ResourceRef): KubeObject[];
}

interface Watch {
  ref: ResourceRef;
  options: WatchOptions;
  sink: (event: WatchEvent) => void;
  end: () => void;
}

const fieldOf = (object: unknown, path: string): string =>
  String(
    path.split('.').reduce<unknown>((value, name) => (value as Record<string, unknown> | undefined)?.[name], object) ??
      '',
  );

function selects(options: ListOptions | WatchOptions, object: KubeObject): boolean {
  if (options.namespace !== undefined && options.namespace !== object.metadata.namespace) return false;
  if (options.labelSelector && !parseLabelSelector(options.labelSelector)(object.metadata.labels)) return false;
  const requirements = options.fieldSelector ? parseFieldSelector(options.fieldSelector) : [];
  const fields = Object.fromEntries(requirements.map(({ field }) => [field, fieldOf(object, field)]));
  return matchesFields(requirements, fields);
}

export function memoryBackend(): MemoryBackend {
  const objects = new Map<string, { ref: ResourceRef; object: KubeObject }>();
  const events: { ref: ResourceRef; event: WatchEvent; revision: number }[] = [];
  const watches = new Set<Watch>();
  const failures: { begin: string; error: Error }[] = [];
  const calls: string[] = [];
  let revision = 0;
  let oldest = 0;

  const keyOf = (ref: ResourceRef, namespace: string | undefined, name: string): string =>
    `${ref.resource} ${namespace ?? ''}/${name}`;
  const note = (
    verb: string,
    ref: ResourceRef,
    namespace: string | undefined,
    name = '',
    subresource?: string,
  ): void => {
    const text = `${verb} ${ref.resource}${subresource === undefined ? '' : `/${subresource}`} ${namespace ?? ''}/${name}`;
    calls.push(text);
    const at = failures.findIndex(({ begin }) => text.startsWith(begin));
    if (at !== -1) throw failures.splice(at, 1)[0]?.error;
  };
  const find = (ref: ResourceRef, namespace: string | undefined, name: string): KubeObject => {
    const found = objects.get(keyOf(ref, namespace, name));
    if (found === undefined) throw notFound(ref, name);
    return found.object;
  };
  const publish = (ref: ResourceRef, event: WatchEvent): void => {
    events.push({ ref, event, revision });
    for (const watch of [...watches]) deliver(watch, ref, event);
  };
  const deliver = (watch: Watch, ref: ResourceRef, event: WatchEvent): void => {
    if (watch.ref.resource === ref.resource && selects(watch.options, event.object as KubeObject)) watch.sink(event);
  };
  const set = (ref: ResourceRef, given: KubeObject): KubeObject => {
    const { namespace, name } = given.metadata;
    const old = objects.get(keyOf(ref, namespace, name))?.object;
    revision++;
    const uid = given.metadata.uid ?? old?.metadata.uid ?? `uid-${revision}`;
    const object = structuredClone({ ...given, metadata: { ...given.metadata, uid, resourceVersion: `${revision}` } });
    objects.set(keyOf(ref, namespace, name), { ref, object });
    publish(ref, { type: old === undefined ? 'ADDED' : 'MODIFIED', object });
    return object;
  };
  const remove = (ref: ResourceRef, namespace: string | undefined, name: string): void => {
    const object = find(ref, namespace, name);
    objects.delete(keyOf(ref, namespace, name));
    revision++;
    const gone = { ...object, metadata: { ...object.metadata, resourceVersion: `${revision}` } };
    publish(ref, { type: 'DELETED', object: gone });
  };
  /** Deletes the object; one with finalizers only gets a deletionTimestamp. */
  const end = (ref: ResourceRef, object: KubeObject): KubeObject => {
    const { metadata } = object;
    if (metadata.finalizers === undefined) remove(ref, metadata.namespace, metadata.name);
    else if (metadata.deletionTimestamp === undefined) {
      return set(ref, { ...object, metadata: { ...metadata, deletionTimestamp: '2026-01-31T00:00:00Z' } });
    }
    return object;
  };
  const all = (ref: ResourceRef): KubeObject[] =>
    [...objects.values()].filter((each) => each.ref.resource === ref.resource).map((each) => each.object);
  const list = (ref: ResourceRef, options: ListOptions) => ({
    apiVersion: 'v1',
    kind: 'List',
    metadata: { resourceVersion: `${revision}` },
    items: all(ref).filter((object) => selects(options, object)),
  });

  return {
    calls,
    failNext: (begin, error) => {
      failures.push({ begin, error });
    },
    endWatches(options) {
      if (options?.lost) {
        revision++;
        oldest = revision;
      }
      for (const watch of [...watches]) watch.end();
    },
    set,
    remove,
    objects: all,
    async get(ref, namespace, name) {
      note('get', ref, namespace, name);
      return find(ref, namespace, name);
    },
    async list(ref, options) {
      note('list', ref, options.namespace);
      const whole = list(ref, options);
      const from = Number(options.continue ?? 0);
      const until = options.limit ? from + options.limit : whole.items.length;
      const more = until < whole.items.length ? { continue: String(until) } : {};
      return { ...whole, metadata: { ...whole.metadata, ...more }, items: whole.items.slice(from, until) };
    },
    async watch(ref, options, sink, signal) {
      note('watch', ref, options.namespace);
      const from = Number(options.resourceVersion ?? revision);
      if (from < oldest) throw expired(`too old resource version: ${from} (${oldest})`);
      const ended = Promise.withResolvers<void>();
      const watch: Watch = { ref, options, sink, end: () => ended.resolve() };
      for (const past of events) if (past.revision > from) deliver(watch, past.ref, past.event);
      watches.add(watch);
      signal.addEventListener('abort', watch.end);
      if (signal.aborted) watch.end();
      await ended.promise;
      watches.delete(watch);
    },
    async create(ref, namespace, object, options = {}) {
      note('create', ref, namespace, options.name ?? object.metadata.name, options.subresource);
      if (options.subresource === 'binding') {
        const pod = find(ref, namespace, options.name as string) as KubeObject & { spec?: object };
        const { target } = object as KubeObject & { target?: { name: string } };
        return set(ref, { ...pod, spec: { ...pod.spec, nodeName: target?.name } } as KubeObject);
      }
      if (objects.has(keyOf(ref, namespace, object.metadata.name))) throw alreadyExists(ref, object.metadata.name);
      return set(ref, object);
    },
    async update(ref, object, options = {}) {
      const { namespace, name } = object.metadata;
      note('update', ref, namespace, name, options.subresource);
      find(ref, namespace, name);
      const stored = set(ref, object);
      const { spec } = object as KubeObject & { spec?: { finalizers?: string[] } };
      if (options.subresource === 'finalize' && spec?.finalizers?.length === 0) remove(ref, namespace, name);
      return stored;
    },
    async patch(ref, namespace, name, _type, body, options = {}) {
      note('patch', ref, namespace, name, options.subresource);
      const old = find(ref, namespace, name);
      type Json = Parameters<typeof applyMergePatch>[0];
      return set(ref, applyMergePatch(structuredClone(old) as unknown as Json, body) as unknown as KubeObject);
    },
    async delete(ref, namespace, name) {
      note('delete', ref, namespace, name);
      return end(ref, find(ref, namespace, name));
    },
    async deleteCollection(ref, options) {
      note('deleteCollection', ref, options.namespace);
      const found = list(ref, options);
      for (const object of found.items) end(ref, object);
      return found;
    },
  };
}
