/**
 * Determines from the facts which lists strategic merge patch merges, and by which key. All other lists are replaced as a whole.
 * Source: the patchStrategy and patchMergeKey tags of the types of v1.33.
 */
import type { FieldStrategy, StrategyLookup } from '../machinery/patch/strategic-merge-patch.ts';
import { jsonFields, perType, structOf, typeFacts } from './facts/facts.ts';

/** For an unknown type, the lookup finds no field. */
export const strategyFor = perType((type: string): StrategyLookup => {
  const strategies = new Map<string, FieldStrategy>();
  return (name) => {
    const known = strategies.get(name);
    if (known !== undefined) return known;
    const field = typeFacts(type) === undefined ? undefined : jsonFields(type).get(name);
    if (field === undefined) return undefined;
    const struct = field.container === 'map' ? undefined : structOf(field);
    const { patchStrategy, mergeKey } = field;
    const strategy: FieldStrategy = {
      ...(patchStrategy === undefined ? {} : { strategy: patchStrategy }),
      ...(mergeKey === undefined ? {} : { mergeKey }),
      ...(struct === undefined ? {} : { fields: strategyFor(struct) }),
    };
    strategies.set(name, strategy);
    return strategy;
  };
});
