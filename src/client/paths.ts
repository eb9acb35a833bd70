/** Builds the paths and queries of API requests. Source: Kubernetes API concepts, resource URIs. */
import type { ResourceRef } from '../machinery/meta.ts';

/** Returns a path such as `/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/node-a/status`. */
export function resourcePath(
  ref: ResourceRef,
  namespace: string | undefined,
  name?: string,
  subresource?: string,
): string {
  const parts = ref.group === '' ? ['api', ref.version] : ['apis', ref.group, ref.version];
  if (namespace !== undefined && namespace !== '') parts.push('namespaces', namespace);
  parts.push(ref.resource);
  if (name !== undefined) parts.push(name);
  if (subresource !== undefined) parts.push(subresource);
  return `/${parts.map(encodeURIComponent).join('/')}`;
}

/** Returns the query with all options that are neither undefined nor '', such as `?limit=500&watch=true`; '' if there are none. */
export function queryText(options: Record<string, string | number | boolean | undefined>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(options)) {
    if (value !== undefined && value !== '') query.set(name, String(value));
  }
  const text = query.toString();
  return text === '' ? '' : `?${text}`;
}
