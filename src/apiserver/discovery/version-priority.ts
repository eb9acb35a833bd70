/** Source: "Version priority" in upstream's documentation of CustomResourceDefinitions. */

const STABILITY = ['alpha', 'beta', undefined] as const;

/**
 * Compares two versions for Array.sort(), the preferred version first: v2, v1, v1beta2, v1beta1, v1alpha1. Names of another form come last,
 * in alphabetical order.
 */
export function byPriority(a: string, b: string): number {
  const [left, right] = [parse(a), parse(b)];
  if (left === undefined || right === undefined) {
    if (left === right) return a < b ? -1 : Number(a > b);
    return left === undefined ? 1 : -1;
  }
  const different = left.findIndex((value, index) => value !== right[index]);
  return different === -1 ? 0 : (right[different] as number) - (left[different] as number);
}

/**
 * Returns [stability, major, minor]; higher numbers are preferred. Returns undefined if the version does not have the form of upstream's
 * versions.
 */
function parse(version: string): [number, number, number] | undefined {
  const match = /^v([1-9]\d*)(?:(alpha|beta)([1-9]\d*))?$/.exec(version);
  if (match === null) return undefined;
  const [, major, stability, minor = '0'] = match;
  return [STABILITY.indexOf(stability as (typeof STABILITY)[number]), Number(major), Number(minor)];
}
