/** Composes the error for a missing namespace, for which the API returns empty lists, as for a namespace without Pods. */
import type { Namespace } from '../../api/generated/types.ts';
import { NAMESPACES } from '../../api/resources.ts';
import type { Client } from '../../client/client.ts';
import { isApiError } from '../../machinery/status.ts';
import { UserError } from '../../platform/files.ts';
import { answeredBy, type Hints } from '../hints.ts';

/** Resolves with the error; with undefined if the namespace exists, or if the user may not read Namespaces. */
export async function missingNamespace(client: Client, name: string, hints: Hints): Promise<UserError | undefined> {
  try {
    await client.resource<Namespace>(NAMESPACES).get(name);
    return undefined;
  } catch (error) {
    if (isApiError(error, 'Forbidden')) return undefined;
    if (!isApiError(error, 'NotFound')) throw error;
    return new UserError(
      `the namespace ${name} does not exist: '${hints.kubectl('get namespaces')}' lists those that exist${answeredBy(hints)}`,
    );
  }
}
