import type { KindDefinition } from '../../api/kind.ts';
import type { ResourceRef } from '../../machinery/meta.ts';
import type { AdmissionTarget, Operation } from './plugin.ts';

export const isKindOf = ({ group, plural }: KindDefinition, { group: wanted, resource }: ResourceRef): boolean =>
  group === wanted && plural === resource;

export const on =
  (ref: ResourceRef, ...operations: Operation[]) =>
  ({ kind, subresource, operation }: AdmissionTarget): boolean =>
    subresource === '' && operations.includes(operation) && isKindOf(kind, ref);
