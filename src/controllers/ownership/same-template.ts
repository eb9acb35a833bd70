/**
 * Compares Pod templates. The functions are pure.
 * Source: EqualIgnoreHash of pkg/controller/deployment/util/deployment_util.go, and Match of pkg/controller/daemon/update.go, of v1.33
 * (behavior).
 */
import { sameValue } from '../../api/core/v1/pod/compare.ts';

/** The fields whose empty values differ from absent ones: an empty selector selects all, and an empty class is not the default class. */
const WITH_MEANINGFUL_EMPTY = /\.(?:namespaceSelector|labelSelector|storageClassName)$/;

/**
 * Whether the templates, or objects that contain them, are equal. Empty values count as absent, except in the fields WITH_MEANINGFUL_EMPTY.
 */
export const sameTemplate = (a: unknown, b: unknown): boolean =>
  sameValue(a, b) && meaningfulEmpties(a, '').join() === meaningfulEmpties(b, '').join();

/** Returns the paths of the empty values in the fields WITH_MEANINGFUL_EMPTY, in alphabetical order. */
function meaningfulEmpties(value: unknown, path: string): string[] {
  const isObject = typeof value === 'object' && value !== null;
  const fields = isObject ? Object.entries(value) : [];
  const isMeaningful = WITH_MEANINGFUL_EMPTY.test(path) && (isObject || value === '') && fields.length === 0;
  if (isMeaningful) return [path];
  return fields.flatMap(([name, field]) => meaningfulEmpties(field, `${path}.${name}`)).sort();
}
