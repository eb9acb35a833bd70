/**
 * The Binding: says which node a Pod is to run on. It is never stored: a create is applied to the Pod that it names
 * (see the binding subresource of the Pod, which judges it too).
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
