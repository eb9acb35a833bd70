/** Finds the ConfigMaps, Secrets and keys that the environment of a Pod's defer containers refers to, but that do not exist. */
import type { Pod } from '../../../api/generated/types.ts';
import { CONFIG_MAPS, SECRETS } from '../../../api/resources.ts';
import type { Client } from '../../../client/client.ts';
import type { KubeObject } from '../../../machinery/meta.ts';
import { ApiError, isApiError } from '../../../machinery/status.ts';
import type { EntryNeed } from '../subject.ts';
import { environmentOf, KINDS, type Kind, type Reference } from './objects.ts';

/** The fields that hold the keys of a ConfigMap or a Secret. */
interface Content {
  data?: object;
  binaryData?: object;
}

/** A Pod may refer to thousands of objects. Those after the first ones make an explanation hardly more precise. */
const MOST_OBJECTS = 100;

const RESOURCES = { ConfigMap: CONFIG_MAPS, Secret: SECRETS };

/**
 * Returns a function that resolves with the objects and keys that the defer containers of a Pod need and that do not exist, in the order of
 * the list of defer containers. It omits optional references, and objects that the user may not read, whose kind it passes to `onUnread`.
 * It resolves with none for a Pod that is being deleted: the node then reports what is missing. It reads each object once, also for several
 * Pods, one after the other within a Pod, and only the first 100 objects of a Pod.
 */
export function entryNeedsReader(client: Client, onUnread: (kind: Kind) => void = () => {}) {
  const reads = new Map<string, Promise<Content | 'missing' | 'unknown'>>();
  const read = (kind: Kind, name: string, namespace = ''): Promise<Content | 'missing' | 'unknown'> => {
    const key = `${kind}/${namespace}/${name}`;
    const found = reads.get(key) ?? contentOf(client, kind, name, namespace, onUnread);
    reads.set(key, found);
    return found;
  };
  return async ({ metadata: { deletionTimestamp, namespace }, spec }: Pod): Promise<EntryNeed[]> => {
    if (deletionTimestamp !== undefined) return [];
    const objects = new Set<string>();
    const check = async (entry: string, kind: Kind, { name, key, optional }: Reference): Promise<EntryNeed[]> => {
      if (optional === true || !name) return [];
      const object = `${kind}/${name}`;
      if (objects.size === MOST_OBJECTS && !objects.has(object)) return [];
      objects.add(object);
      const content = await read(kind, name, namespace);
      if (content === 'unknown') return [];
      if (content === 'missing') return [{ entry, kind, name }];
      const { data = {}, binaryData = {} } = content;
      const has = (held: object): boolean => key !== undefined && Object.hasOwn(held, key);
      return key === undefined || has(data) || has(binaryData) ? [] : [{ entry, kind, name, key }];
    };
    const needs: EntryNeed[] = [];
    for (const entry of spec?.deferContainers ?? [])
      for (const kind of KINDS)
        for (const reference of environmentOf(entry, kind)) needs.push(...(await check(entry.name, kind, reference)));
    return needs;
  };
}

async function contentOf(
  client: Client,
  kind: Kind,
  name: string,
  namespace: string,
  onUnread: (kind: Kind) => void,
): Promise<Content | 'missing' | 'unknown'> {
  try {
    return await client.resource<Content & KubeObject>(RESOURCES[kind]).get(name, namespace);
  } catch (error) {
    if (isApiError(error, 'NotFound')) return 'missing';
    if (isApiError(error, 'Forbidden')) onUnread(kind);
    // The needs only make the explanation more precise.
    if (error instanceof ApiError) return 'unknown';
    throw error;
  }
}
