import { text as readText } from 'node:stream/consumers';
import type { HttpClient } from '../../client/http-client.ts';
import { isApiError } from '../../machinery/status.ts';
import type { KindInfo } from './plan.ts';

interface ResourceList {
  resources: { name: string; kind: string; namespaced: boolean }[];
}

/** Resolves with undefined if the server does not have the kind. */
export type FindKind = (apiVersion: string, kind: string) => Promise<KindInfo | undefined>;

/** Caches the discovery document of each API version. Reads a document again if it lacks the kind, which may have been added since. */
export function createFindKind(client: HttpClient, signal: AbortSignal): FindKind {
  const lists = new Map<string, ResourceList>();
  const read = async (apiVersion: string): Promise<ResourceList> => {
    const path = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
    try {
      return JSON.parse(await readText(await client.open(encodeURI(path), signal))) as ResourceList;
    } catch (error) {
      if (isApiError(error, 'NotFound')) return { resources: [] };
      throw error;
    }
  };
  return async (apiVersion, kind) => {
    const isKind = (each: ResourceList['resources'][number]): boolean => each.kind === kind && !each.name.includes('/');
    const list = lists.get(apiVersion);
    const known = list?.resources.some(isKind) ? list : await read(apiVersion);
    lists.set(apiVersion, known);
    const found = known.resources.find(isKind);
    if (found === undefined) return undefined;
    const [version = '', group = ''] = apiVersion.split('/').reverse();
    return { group, version, resource: found.name, kind, namespaced: found.namespaced };
  };
}
