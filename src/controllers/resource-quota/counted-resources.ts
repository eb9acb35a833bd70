import { isCountable } from '../../api/core/v1/resource-quota/usage/evaluators.ts';
import type { KindDefinition } from '../../api/kind.ts';
import type { ResourceRef } from '../../machinery/meta.ts';

export const countedResources = (kinds: readonly KindDefinition[]): ResourceRef[] =>
  kinds
    .filter((kind) => isCountable(kind) && kind.storage === undefined)
    .map(({ group, version, plural }) => ({ group, version, resource: plural }));
