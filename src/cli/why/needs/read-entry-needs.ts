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

const RESOURCES = { ConfigMap: CONFIG_MAPS, Secret: SECRETS };

/**
 * Resolves with the objects and keys that the defer containers need and that do not exist, in the order of the list of defer containers.
 * Omits optional references, and objects that the user may not read. Resolves with none for a Pod that is being deleted: the node then
 * reports what is missing.
 */
export async function readEntryNeeds(client: Client, pod: Pod): Promise<EntryNeed[]> {
  if (pod.metadata.deletionTimestamp !== undefined) return [];
  const reads = new Map<string, Promise<Content | 'missing' | 'unknown'>>();
  const read = (kind: Kind, name: string): Promise<Content | 'missing' | 'unknown'> => {
    const key = `${kind}/${name}`;
    const found = reads.get(key) ?? contentOf(client, kind, name, pod.metadata.namespace);
    reads.set(key, found);
    return found;
  };
  const check = async (entry: string, kind: Kind, { name, key, optional }: Reference): Promise<EntryNeed[]> => {
    if (optional === true || !name) return [];
    const content = await read(kind, name);
    if (content === 'unknown') return [];
    if (content === 'missing') return [{ entry, kind, name }];
    const { data = {}, binaryData = {} } = content;
    const has = (held: object): boolean => key !== undefined && Object.hasOwn(held, key);
    return key === undefined || has(data) || has(binaryData) ? [] : [{ entry, kind, name, key }];
  };
  const needs = (pod.spec?.deferContainers ?? []).flatMap((entry) =>
    KINDS.flatMap((kind) => environmentOf(entry, kind).map((reference) => check(entry.name, kind, reference))),
  );
  return (await Promise.all(needs)).flat();
}

async function contentOf(
  client: Client,
  kind: Kind,
  name: string,
  namespace: string | undefined,
): Promise<Content | 'missing' | 'unknown'> {
  try {
    return await client.resource<Content & KubeObject>(RESOURCES[kind]).get(name, namespace);
  } catch (error) {
    if (isApiError(error, 'NotFound')) return 'missing';
    // The needs only make the explanation more precise.
    if (error instanceof ApiError) return 'unknown';
    throw error;
  }
}
