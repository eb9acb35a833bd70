/** Reads the Pod that a command needs. For a missing Pod, the error says whether the Pod has existed, what remains, and what to type. */
import type { Pod } from '../../api/generated/types.ts';
import { PODS } from '../../api/resources.ts';
import type { Client } from '../../client/client.ts';
import { isApiError } from '../../machinery/status.ts';
import { UserError } from '../../platform/files.ts';
import { answeredBy, type Hints } from '../hints.ts';
import { findLife, podName } from '../records.ts';
import { mayNotReadPods } from '../refusals.ts';
import { listPhrase, mayListAll } from './list-phrase.ts';
import { missingNamespace } from './missing-namespace.ts';
import { shortList } from './missing-pod.ts';
import { requirePod } from './not-a-pod.ts';

export interface PodSource {
  client: Client;
  namespace: string;
  hints: Hints;
}

/**
 * Resolves with the Pod of the name in the namespace, else with the Pod whose UID begins with `given`. Rejects with a UserError if there is
 * no such Pod, if the user may not read it, or if `given` names an object of another type. `consequence` follows the statement that the Pod
 * no longer exists, such as `and its logs are deleted`.
 */
export async function presentPod(source: PodSource, given: string, consequence = ''): Promise<Pod> {
  const { client, namespace, hints } = source;
  await requirePod(source, given);
  const name = podName(given);
  const found = await client
    .resource<Pod>(PODS)
    .get(name, namespace)
    .catch((error: unknown) => {
      if (isApiError(error, 'NotFound')) return undefined;
      throw isApiError(error, 'Forbidden') ? mayNotReadPods(namespace) : error;
    });
  if (found !== undefined) return found;
  const life = await findLife(client, namespace, name, hints).catch(async (error: unknown) => {
    // This API server has no records.
    if (!isApiError(error, 'NotFound')) throw error;
    throw new UserError(
      `no Pod ${name} in namespace ${namespace}: ${await listPhrase(source, PODS, 'Pod')}${answeredBy(hints)}`,
    );
  });
  if (life.pod !== undefined) return life.pod;
  const command = (verb: string): string => hints.lifepod(`${verb} ${given} -n ${life.namespace}`);
  throw new UserError(
    `Pod ${life.name} in namespace ${life.namespace} no longer exists${consequence === '' ? '' : `, ${consequence}`}: ` +
      `'${command('why')}' explains its end, and '${command('timeline')}' draws its life`,
  );
}

/** Resolves with the error for a command that needs the name of a Pod. `verb` is the command without the name, such as `describe pod`. */
export async function unnamedPod(source: PodSource, verb: string): Promise<UserError> {
  const { client, namespace, hints } = source;
  const { items } = await client
    .resource<Pod>(PODS)
    .list({ namespace })
    .catch((error: unknown) => {
      throw isApiError(error, 'Forbidden') ? mayNotReadPods(namespace) : error;
    });
  const [first, ...others] = items.map(({ metadata }) => metadata.name);
  const noNamespace = first === undefined ? await missingNamespace(client, namespace, hints) : undefined;
  if (noNamespace !== undefined) return noNamespace;
  if (first === undefined) {
    const lists = (await mayListAll(client, PODS))
      ? `'${hints.kubectl('get pods -A')}' lists all Pods`
      : 'name another one with -n';
    return new UserError(`there is no Pod in namespace ${namespace}: ${lists}${answeredBy(hints)}`);
  }
  return new UserError(
    `name one of the Pods in namespace ${namespace} (${shortList([first, ...others])}), such as '${hints.lifepod(`${verb} ${first} -n ${namespace}`)}'`,
  );
}
