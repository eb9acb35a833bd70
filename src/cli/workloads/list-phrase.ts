/** Composes the phrases that name the command that lists the objects a user may see, for sentences about an object that was not found. */
import type { Client } from '../../client/client.ts';
import type { KubeObject, ResourceRef } from '../../machinery/meta.ts';
import { isApiError } from '../../machinery/status.ts';
import type { Hints } from '../hints.ts';

/** Resolves with whether the user may list the resource in all namespaces. A user with only a RoleBinding may not. */
export async function mayListAll(client: Client, resource: ResourceRef): Promise<boolean> {
  try {
    await client.resource<KubeObject>(resource).list({ limit: 1 });
    return true;
  } catch (error) {
    if (!isApiError(error)) throw error;
    return !isApiError(error, 'Forbidden');
  }
}

/**
 * Resolves with a phrase such as `'kubectl get pods -A' lists all Pods`; about the namespace only if the user may not list the resource in
 * all namespaces.
 */
export async function listPhrase(
  { client, namespace, hints }: { client: Client; namespace: string; hints: Hints },
  resource: ResourceRef,
  kind: string,
): Promise<string> {
  const get = `get ${resource.resource}`;
  return (await mayListAll(client, resource))
    ? `'${hints.kubectl(`${get} -A`)}' lists all ${kind}s`
    : `'${hints.kubectl(`${get} -n ${namespace}`)}' lists the ${kind}s of this namespace`;
}
