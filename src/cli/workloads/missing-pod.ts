/** Composes the error for a name that no Pod has or had: where a Pod or a workload of the name is, or that the namespace is missing. */
import type { Pod, PodRecord } from '../../api/generated/types.ts';
import { POD_RECORDS } from '../../api/lifepod.io/v1/pod-record/index.ts';
import { PODS } from '../../api/resources.ts';
import type { Client } from '../../client/client.ts';
import { isApiError } from '../../machinery/status.ts';
import { UserError } from '../../platform/files.ts';
import { answeredBy, type Hints } from '../hints.ts';
import { mayListAll } from './list-phrase.ts';
import { missingNamespace } from './missing-namespace.ts';
import { workloadsNamed } from './workloads.ts';

const MOST_NAMES = 5;

export async function missingPod(client: Client, namespace: string, name: string, hints: Hints): Promise<UserError> {
  const [noNamespace, types, elsewhere, similar, isOfAll] = await Promise.all([
    missingNamespace(client, namespace, hints),
    workloadsNamed(client, namespace, name),
    otherNamespaces(client, name),
    similarNames(client, namespace, name),
    mayListAll(client, PODS),
  ]);
  const none =
    noNamespace === undefined
      ? `no Pod ${name} in namespace ${namespace}, and no record of one`
      : `the namespace ${namespace} does not exist, so there is no Pod ${name} in it`;
  const [type] = types;
  if (type !== undefined)
    return new UserError(
      `${none}, but a ${type.kind} of this name: '${hints.lifepod(`why ${type.names[0]}/${name} -n ${namespace}`)}' explains its Pods`,
    );
  if (elsewhere.length > 0) {
    const [first = ''] = elsewhere;
    const list = shortList(elsewhere);
    return new UserError(
      `${none}, but ${noNamespace === undefined ? '' : 'there is one '}in namespace ${list}: '${hints.lifepod(`why ${name} -n ${first}`)}' explains ${elsewhere.length > 1 ? 'the first' : 'it'}`,
    );
  }
  if (noNamespace !== undefined) return noNamespace;
  const near = similar.length === 0 ? '' : `; there ${similar.length === 1 ? 'is' : 'are'} ${shortList(similar)}`;
  const get = (words: string): string => `'${hints.kubectl(`get ${words}`)}'`;
  const lists = isOfAll
    ? `${get('pods -A')} lists all Pods, ${get('podrecords -A')} all records`
    : `${get(`pods -n ${namespace}`)} lists the Pods of this namespace, ${get(`podrecords -n ${namespace}`)} its records`;
  return new UserError(
    `${none}${near}: ${lists}, which are deleted some time after the end of their Pods (see --record-age of 'lifepod up')${answeredBy(hints)}`,
  );
}

export const shortList = (names: readonly string[]): string =>
  names.length > MOST_NAMES
    ? `${names.slice(0, MOST_NAMES).join(', ')} and ${names.length - MOST_NAMES} more`
    : names.join(', ');

/** Resolves with the namespaces that have a Pod of the name, else with those that have a record of one. */
async function otherNamespaces(client: Client, name: string): Promise<string[]> {
  const pods = await client
    .resource<Pod>(PODS)
    .list({ fieldSelector: `metadata.name=${name}` })
    .catch(noneIfRefused);
  const found =
    pods.items.length > 0
      ? pods.items
      : (
          await client
            .resource<PodRecord>(POD_RECORDS)
            .list({ fieldSelector: `podName=${name}` })
            .catch(noneIfRefused)
        ).items;
  return [...new Set(found.flatMap(({ metadata }) => metadata.namespace ?? []))].sort();
}

async function similarNames(client: Client, namespace: string, name: string): Promise<string[]> {
  const { items } = await client.resource<Pod>(PODS).list({ namespace }).catch(noneIfRefused);
  const names = items.map(({ metadata }) => metadata.name);
  const longer = names.filter((each) => each.startsWith(name));
  return longer.length > 0 ? longer : names.filter((each) => isTypingError(name, each));
}

/** Returns whether the names differ by one character that is missing, added or wrong, or by two adjacent characters that are exchanged. */
export function isTypingError(typed: string, meant: string): boolean {
  let start = 0;
  while (start < typed.length && typed[start] === meant[start]) start++;
  const [rest, wanted] = [typed.slice(start), meant.slice(start)];
  return (
    rest.slice(1) === wanted ||
    rest === wanted.slice(1) ||
    rest.slice(1) === wanted.slice(1) ||
    (rest.length > 1 && rest[0] === wanted[1] && rest[1] === wanted[0] && rest.slice(2) === wanted.slice(2))
  );
}

/** An error of the API means that the user may not read other namespaces, or that the name is not valid in a field selector. */
function noneIfRefused(error: unknown): { items: [] } {
  if (isApiError(error)) return { items: [] };
  throw error;
}
