/**
 * The Binding: assigns a Pod to a node. A Binding is never stored: creating a Binding changes the Pod that it names. The subresource
 * `binding` of the Pod validates and applies the Binding.
 */
import type { Binding } from '../../../generated/types.ts';
import type { KindDefinition } from '../../../kind.ts';

export const bindingKind: KindDefinition<Binding> = {
  group: '',
  version: 'v1',
  kind: 'Binding',
  plural: 'bindings',
  singular: 'binding',
  shortNames: [],
  categories: [],
  namespaced: true,
  schema: 'Binding',
  createOnly: true,
  validateCreate: () => [],
  validateUpdate: () => [],
  subresources: {},
  columns: [],
  row: () => [],
};
