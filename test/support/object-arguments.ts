/** Parses the words with which kubectl names objects. */
import { kinds } from '../../src/api/kinds.ts';
import { type KubeObject, type ResourceRef, uidOf } from '../../src/machinery/meta.ts';
import type { ResourceApi } from '../../src/ports/backend.ts';
import type { Connection } from './connection.ts';

/** For parseArgs(). */
export const SELECTION = {
  namespace: { type: 'string', short: 'n' },
  selector: { type: 'string', short: 'l' },
} as const;

/** The objects of one kind that an argument names: the object `name`, those with the labels `labelSelector`, or all of them. */
export interface Named {
  ref: ResourceRef;
  /** Undefined if the kind is not namespaced. */
  namespace?: string;
  name?: string;
  labelSelector?: string;
}

interface Kind {
  ref: ResourceRef;
  namespaced: boolean;
}

/** Accepts the plural, singular and short names of built-in kinds. Throws for other words. */
export function kindNamed(word: string): Kind {
  const kind = kinds.find(({ plural, singular, shortNames }) => [plural, singular, ...shortNames].includes(word));
  if (kind === undefined) throw new Error(`no built-in kind is named ${word}`);
  return { ref: { group: kind.group, version: kind.version, resource: kind.plural }, namespaced: kind.namespaced };
}

/**
 * Returns the objects that the words name. The words are `KIND/NAME` any number of times, or `KIND` or `KIND,KIND` with names. Without
 * names, `-l` or `--all` must select the objects, as with `kubectl delete` and `kubectl wait`. Throws if a kind is unknown or if nothing
 * selects the objects.
 */
export function objectsNamed(
  words: readonly string[],
  own: string,
  options: { namespace?: string; selector?: string; all?: boolean },
): Named[] {
  const named = (word: string, name?: string): Named => {
    const { ref, namespaced } = kindNamed(word);
    const where = namespaced ? { namespace: options.namespace ?? own } : {};
    return { ref, ...where, ...(name === undefined ? { labelSelector: options.selector } : { name }) };
  };
  const [first = '', ...names] = words;
  if (first.includes('/')) {
    return words.map((word) => {
      const [kind = '', name] = word.split('/');
      return named(kind, name);
    });
  }
  if (names.length === 0 && options.selector === undefined && options.all !== true) {
    throw new Error(`${first}: give a name, -l or --all`);
  }
  return first
    .split(',')
    .flatMap((kind) => (names.length === 0 ? [named(kind)] : names.map((name) => named(kind, name))));
}

const selectorsOf = ({ namespace, name, labelSelector }: Named) => ({
  namespace,
  labelSelector,
  fieldSelector: name === undefined ? undefined : `metadata.name=${name}`,
});

export const existing = async (api: ResourceApi, named: Named): Promise<KubeObject[]> =>
  (await api.list(named.ref, selectorsOf(named))).items;

/**
 * Resolves when `satisfied` returns true for the objects by UID, which a watch keeps current. Rejects with the error that `satisfied`
 * throws. When `signal` aborts, rejects with an error that contains the objects.
 */
export async function untilObjects(
  { api }: Connection,
  named: Named,
  satisfied: (objects: ReadonlyMap<string, KubeObject>) => boolean,
  signal: AbortSignal,
): Promise<void> {
  while (true) {
    const selectors = selectorsOf(named);
    const { items, metadata } = await api.list(named.ref, selectors);
    const objects = new Map(items.map((object) => [uidOf(object), object]));
    if (satisfied(objects)) return;
    const done = Promise.withResolvers<boolean>();
    const ended = new AbortController();
    const watched = api.watch(
      named.ref,
      { ...selectors, resourceVersion: metadata.resourceVersion },
      (event) => {
        if (event.type === 'ERROR' || event.type === 'BOOKMARK') return;
        if (event.type === 'DELETED') objects.delete(uidOf(event.object));
        else objects.set(uidOf(event.object), event.object);
        try {
          if (satisfied(objects)) done.resolve(true);
        } catch (error) {
          done.reject(error);
        }
      },
      AbortSignal.any([signal, ended.signal]),
    );
    watched.then(() => done.resolve(false), done.reject);
    try {
      if (await done.promise) return;
    } finally {
      ended.abort();
    }
    if (signal.aborted) {
      const states = [...objects.values()].map(({ kind, metadata, ...rest }) => ({
        kind,
        name: metadata.name,
        ...rest,
      }));
      throw new Error(`the wait has not ended, the state is ${JSON.stringify(states)}`);
    }
  }
}

const DEFAULT_SECONDS = 120;

/** `timeout` has the form `20s`; by default two minutes. */
export const signalOf = (timeout = `${DEFAULT_SECONDS}s`): AbortSignal =>
  AbortSignal.timeout(Number.parseInt(timeout, 10) * 1000);
