/** Composes the error for a workload, or an object of another type, that was given instead of a Pod. */
import { isApiError } from '../../machinery/status.ts';
import { UserError } from '../../platform/files.ts';
import { requirePodName } from '../records.ts';
import { listPhrase } from './list-phrase.ts';
import { missingNamespace } from './missing-namespace.ts';
import { shortList } from './missing-pod.ts';
import type { PodSource } from './present-pod.ts';
import { isPodType } from './type-names.ts';
import { findWorkload, workloadType } from './workloads.ts';

/**
 * Rejects with a UserError if `given` is TYPE/NAME of a type other than Pod. The error for a workload names its Pods. Call this before
 * the Pod is read.
 */
export async function requirePod(source: PodSource, given: string): Promise<void> {
  const [word = '', name, ...more] = given.split('/');
  const type = isPodType(word) || name === '' || more.length > 0 ? undefined : workloadType(word);
  if (type === undefined || name === undefined) {
    requirePodName(given);
    return;
  }
  const { client, namespace, hints } = source;
  const found = await findWorkload(client, namespace, { type, name }).catch((error: unknown) => {
    throw isApiError(error, 'Forbidden') ? notAPod(given, 'give the name of one of its Pods') : error;
  });
  if (found === undefined)
    throw (
      (await missingNamespace(client, namespace, hints)) ??
      new UserError(
        `no ${type.kind} ${name} in namespace ${namespace}: ${await listPhrase(source, type.resource, type.kind)}`,
      )
    );
  const names = found.pods.map(({ metadata }) => metadata.name);
  const why = hints.lifepod(`why ${type.names[0]}/${name} -n ${namespace}`);
  throw notAPod(
    given,
    names.length === 0
      ? `it has no Pods now, and '${why}' explains why`
      : `give the name of one of its Pods (${shortList(names)})`,
  );
}

const notAPod = (given: string, advice: string): UserError =>
  new UserError(`${JSON.stringify(given)} is not a Pod: ${advice}`);
