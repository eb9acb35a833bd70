/**
 * Compares Pod templates. The functions are pure.
 * Source: EqualIgnoreHash of pkg/controller/deployment/util/deployment_util.go, and Match of pkg/controller/daemon/update.go, of v1.33
 * (behavior).
 */
import { sameValue } from '../../api/core/v1/pod/compare.ts';

/**
 * In these fields, an empty value differs from an absent one: an empty selector selects all, and an empty class is not the default class.
 */
const WITH_MEANINGFUL_EMPTY = /\.(?:namespaceSelector|labelSelector|storageClassName)$/;

/** Compares templates, or objects that contain them. Empty values count as absent, except in the fields WITH_MEANINGFUL_EMPTY. */
export const sameTemplate = (a: unknown, b: unknown): boolean =>
  sameValue(a, b) && meaningfulEmpties(a, '').join() === meaningfulEmpties(b, '').join();

function meaningfulEmpties(value: unknown, path: string): string[] {
  const isObject = typeof value === 'object' && value !== null;
  const fields = isObject ? Object.entries(value) : [];
  const isMeaningful = WITH_MEANINGFUL_EMPTY.test(path) && (isObject || value === '') && fields.length === 0;
  if (isMeaningful) return [path];
  return fields.flatMap(([name, field]) => meaningfulEmpties(field, `${path}.${name}`)).sort();
}
