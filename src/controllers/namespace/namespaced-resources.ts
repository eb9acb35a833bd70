import type { KindDefinition } from '../../api/kind.ts';
import type { ResourceRef } from '../../machinery/meta.ts';

/** Returns the stored namespaced resources whose objects are deleted with their namespace. */
export const namespacedResources = (kinds: readonly KindDefinition[]): ResourceRef[] =>
  kinds
    .filter((kind) => kind.namespaced && !kind.outlivesNamespace && !kind.createOnly)
    .filter((kind) => kind.storage === undefined && kind.computed === undefined)
    .map(({ group, version, plural }) => ({ group, version, resource: plural }));
