/** Source: routes.Index of v1.33. */
import type { KindDefinition } from '../../api/kind.ts';

const FIXED = [
  '/.well-known/openid-configuration',
  '/api',
  '/apis',
  '/apis/',
  '/metrics',
  '/openapi/v2',
  '/openapi/v3',
  '/openapi/v3/',
  '/openid/v1/jwks',
  '/version',
];

/** Returns the paths that the document at / lists. `checks`: the paths of the health endpoints and of their checks. */
export function rootPaths(kinds: readonly KindDefinition[], checks: readonly string[]): string[] {
  const ofGroups = kinds.flatMap(({ group, version }) =>
    group === '' ? [`/api/${version}`] : [`/apis/${group}`, `/apis/${group}/${version}`],
  );
  return [...new Set([...FIXED, ...ofGroups, ...checks])].sort();
}
