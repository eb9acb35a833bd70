/** Functions with which plugins implement handles(). */
import type { KindDefinition } from '../../api/kind.ts';
import type { ResourceRef } from '../../machinery/meta.ts';
import type { AdmissionTarget, Operation } from './plugin.ts';

/** Whether the kind has the group and the plural of the resource. The versions may differ. */
export const isKindOf = ({ group, plural }: KindDefinition, { group: wanted, resource }: ResourceRef): boolean =>
  group === wanted && plural === resource;

/** Returns a predicate for operations on the main resource of a kind. */
export const on =
  (ref: ResourceRef, ...operations: Operation[]) =>
  ({ kind, subresource, operation }: AdmissionTarget): boolean =>
    subresource === '' && operations.includes(operation) && isKindOf(kind, ref);
