/** The resources whose objects are deleted with their namespace. */
import type { KindDefinition } from '../../api/kind.ts';
import type { ResourceRef } from '../../machinery/meta.ts';

/**
 * Returns all stored namespaced resources whose objects do not outlive their namespace. Pods are first, before the objects that
 * they use. Source: KEP-5080.
 */
export const namespacedResources = (kinds: readonly KindDefinition[]): ResourceRef[] =>
  kinds
    .filter((kind) => kind.namespaced && !kind.outlivesNamespace && !kind.createOnly)
    .filter((kind) => kind.storage === undefined && kind.computed === undefined)
    .map(({ group, version, plural }) => ({ group, version, resource: plural }))
    .sort((a, b) => Number(isPods(b)) - Number(isPods(a)));

const isPods = ({ group, resource }: ResourceRef): boolean => group === '' && resource === 'pods';
