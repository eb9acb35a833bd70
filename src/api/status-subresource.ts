/**
 * The status subresource of all kinds that have one, except Pods. A write replaces the status and the metadata except the generation, and
 * keeps all other fields.
 * Source: the status strategies in pkg/registry of v1.33 (behavior).
 */
import type { FieldError } from '../machinery/field-error.ts';
import type { KubeObject } from '../machinery/meta.ts';
import type { SubresourceDefinition, WriteContext } from './kind.ts';

/** `prepare`: mutates the new object before its validation, for example to restore labels. */
export function statusSubresource<T extends KubeObject & { status?: unknown }>(
  validate: (object: T, old: T) => FieldError[],
  prepare: (object: T, old: T, context: WriteContext) => void = () => {},
): SubresourceDefinition<T> {
  return {
    verbs: ['get', 'update', 'patch'],
    apply(old, body, context) {
      const { metadata, status } = body as T;
      const { generation: _, ...rest } = metadata;
      const { generation } = old.metadata;
      const object = { ...old, metadata: { ...rest, ...(generation === undefined ? {} : { generation }) }, status };
      prepare(object, old, context);
      return object;
    },
    validate,
  };
}
