/** Source: meta/v1 APIResourceList and apidiscovery.k8s.io/v2 APIGroupDiscoveryList of v1.33. */
import { createHash } from 'node:crypto';
import type { KindDefinition, SubresourceDefinition } from '../../api/kind.ts';
import { pathNotFound } from '../../machinery/status.ts';
import { verbsOf } from '../http/routes.ts';
import { apiVersionOf } from '../registry/resources.ts';
import { byPriority } from './version-priority.ts';

const groupsOf = (kinds: readonly KindDefinition[]): string[] => [...new Set(kinds.map((kind) => kind.group))];

const versionsOf = (kinds: readonly KindDefinition[], group: string): string[] =>
  [...new Set(kinds.filter((kind) => kind.group === group).map((kind) => kind.version))].sort(byPriority);

const byPlural = (a: KindDefinition, b: KindDefinition): number => (a.plural < b.plural ? -1 : 1);

const subresourcesOf = (kind: KindDefinition): [string, SubresourceDefinition][] =>
  Object.entries(kind.subresources).sort(([a], [b]) => (a < b ? -1 : 1));

const sortedVerbs = (definition: SubresourceDefinition): string[] => [...definition.verbs].sort();

/** The document at /api. */
export const apiVersions = (kinds: readonly KindDefinition[]) => ({
  kind: 'APIVersions',
  versions: versionsOf(kinds, ''),
  serverAddressByClientCIDRs: [],
});

function apiGroup(kinds: readonly KindDefinition[], group: string) {
  const versions = versionsOf(kinds, group).map((version) => ({ groupVersion: apiVersionOf(group, version), version }));
  return { name: group, versions, preferredVersion: versions[0] };
}

/** The document at /apis. */
export const apiGroupList = (kinds: readonly KindDefinition[]) => ({
  kind: 'APIGroupList',
  apiVersion: 'v1',
  groups: groupsOf(kinds)
    .filter((group) => group !== '')
    .map((group) => apiGroup(kinds, group)),
});

/** The document at /apis/GROUP. Throws 404 NotFound if the group is not served, or is the core group. */
export function apiGroupDocument(kinds: readonly KindDefinition[], group: string) {
  if (group === '' || !groupsOf(kinds).includes(group)) throw pathNotFound();
  return { kind: 'APIGroup', apiVersion: 'v1', ...apiGroup(kinds, group) };
}

/** Clients that migrate stored objects recognize the stored version by this hash. Source: apiserver's StorageVersionHash. */
const storageVersionHash = (kind: KindDefinition): string =>
  createHash('sha256').update(`${kind.group}/${kind.version}/${kind.kind}`).digest().subarray(0, 8).toString('base64');

function apiResources(kind: KindDefinition) {
  const own = {
    name: kind.plural,
    singularName: kind.singular,
    namespaced: kind.namespaced,
    kind: kind.kind,
    verbs: verbsOf(kind),
    ...(kind.shortNames.length === 0 ? {} : { shortNames: kind.shortNames }),
    ...(kind.categories.length === 0 ? {} : { categories: kind.categories }),
    ...(kind.createOnly !== undefined || kind.computed !== undefined
      ? {}
      : { storageVersionHash: storageVersionHash(kind) }),
  };
  const subresources = subresourcesOf(kind).map(([name, definition]) => {
    const { bodyKind } = definition;
    const foreign = bodyKind !== undefined && (bodyKind.group !== kind.group || bodyKind.version !== kind.version);
    return {
      name: `${kind.plural}/${name}`,
      singularName: '',
      namespaced: kind.namespaced,
      ...(foreign ? { group: bodyKind.group, version: bodyKind.version } : {}),
      kind: bodyKind?.kind ?? definition.connects ?? kind.kind,
      verbs: sortedVerbs(definition),
    };
  });
  return [own, ...subresources];
}

/** The document at /api/v1 or /apis/GROUP/VERSION. Throws 404 NotFound if the version is not served. */
export function apiResourceList(kinds: readonly KindDefinition[], group: string, version: string) {
  const served = kinds.filter((kind) => kind.group === group && kind.version === version).sort(byPlural);
  if (served.length === 0) throw pathNotFound();
  return {
    kind: 'APIResourceList',
    ...(group === '' ? {} : { apiVersion: 'v1' }),
    groupVersion: apiVersionOf(group, version),
    resources: served.flatMap(apiResources),
  };
}

function resourceDiscovery(kind: KindDefinition) {
  const scope = kind.namespaced ? 'Namespaced' : 'Cluster';
  const subresources = subresourcesOf(kind).map(([subresource, definition]) => {
    const { group, version, kind: own } = definition.bodyKind ?? kind;
    const name = definition.connects ?? own;
    return { subresource, responseKind: { group, version, kind: name }, verbs: sortedVerbs(definition) };
  });
  return {
    resource: kind.plural,
    responseKind: { group: kind.group, version: kind.version, kind: kind.kind },
    scope,
    singularResource: kind.singular,
    verbs: verbsOf(kind),
    ...(kind.shortNames.length === 0 ? {} : { shortNames: kind.shortNames }),
    ...(kind.categories.length === 0 ? {} : { categories: kind.categories }),
    ...(subresources.length === 0 ? {} : { subresources }),
  };
}

export type AggregatedVersion = 'v2' | 'v2beta1';

/** The aggregated document at /api if `core` is true, otherwise at /apis. */
export function aggregatedDiscovery(kinds: readonly KindDefinition[], core: boolean, version: AggregatedVersion) {
  const groups = groupsOf(kinds).filter((group) => (group === '') === core);
  return {
    kind: 'APIGroupDiscoveryList',
    apiVersion: `apidiscovery.k8s.io/${version}`,
    metadata: {},
    items: groups.map((group) => ({
      metadata: { ...(group === '' ? {} : { name: group }), creationTimestamp: null },
      versions: versionsOf(kinds, group).map((groupsVersion) => ({
        version: groupsVersion,
        resources: kinds
          .filter((kind) => kind.group === group && kind.version === groupsVersion)
          .sort(byPlural)
          .map(resourceDiscovery),
        freshness: 'Current',
      })),
    })),
  };
}
