/** The Binding: assigns a Pod to a node. A Binding is never stored: creating a Binding changes the Pod that it names. */
import { kind } from '../../../declaration.ts';
import type { Binding } from '../../../generated/types.ts';
import { PODS } from '../../../resources.ts';

export const bindingKind = kind<Binding>('v1', 'Binding', {
  createOnly: { resource: PODS, subresource: 'binding' },
  columns: [],
});
