/**
 * The Binding: assigns a Pod to a node. It is never stored: creating one is applied to the Pod that it names (see the binding
 * subresource of the Pod, which also validates it).
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
