/** Finds the names that complete a word: asks the API server or reads the kubeconfig. */
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import type { Node, Pod, PodRecord } from '../../api/generated/types.ts';
import { POD_RECORDS } from '../../api/lifepod.io/v1/pod-record/index.ts';
import { NAMESPACES, NODES, PODS } from '../../api/resources.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import { untilAborted } from '../../platform/on-abort.ts';
import { familiarName } from '../../runtime/images/references.ts';
import { podContainers } from '../pod-containers.ts';
import { podName } from '../records.ts';
import { kubeconfigPaths, resolveTarget, type Target, type TargetOptions } from '../target.ts';
import { workloadType } from '../workloads/workloads.ts';
import type { NameKind, Suggestion } from './suggest.ts';

type Wanted = Extract<Suggestion, { kind: 'names' }>;

export async function findNames(wanted: Wanted): Promise<string[]> {
  const { names, options, typed } = wanted;
  const given: TargetOptions = {
    namespace: options.get('--namespace'),
    dataDir: options.get('--data-dir'),
    kubeconfig: options.get('--kubeconfig'),
    context: options.get('--context'),
  };
  const found = names === 'contexts' ? contextsOf(given) : await FINDERS[names](await resolveTarget(given), wanted);
  return [...new Set(found)].filter((name) => name.startsWith(typed)).sort();
}

/** PodRecords are large. After this time, only the names of existing Pods are offered. */
const RECORDS_MILLIS = 500;
const MOST_RECORDS = 500;

/** Users neither run nor remove the image of sandboxes. */
const isSandboxImage = (name: string): boolean => /^(localhost\/lifepod|registry\.k8s\.io)\/pause(?=[:@]|$)/.test(name);

const namesOf = (objects: readonly KubeObject[]): string[] => objects.map(({ metadata }) => metadata.name);

const podsOf = async ({ client, namespace }: Target): Promise<Pod[]> =>
  (await client.resource<Pod>(PODS).list({ namespace })).items;

const podOf = ({ client, namespace }: Target, [name = '']: readonly string[]): Promise<Pod> =>
  client.resource<Pod>(PODS).get(podName(name), namespace);

/** Resolves with none if the request fails or takes too long. */
async function recordedOf({ client, namespace }: Target): Promise<string[]> {
  const records = client.resource<PodRecord>(POD_RECORDS).list({ namespace, limit: MOST_RECORDS });
  return untilAborted(AbortSignal.timeout(RECORDS_MILLIS), records).then(
    ({ items }) => items.map(({ podName: name }) => name),
    () => [],
  );
}

const FINDERS: Record<Exclude<NameKind, 'contexts'>, (target: Target, wanted: Wanted) => Promise<string[]>> = {
  pods: async (target) => namesOf(await podsOf(target)),
  async lives(target) {
    const [pods, gone] = await Promise.all([podsOf(target), recordedOf(target)]);
    return [...namesOf(pods), ...gone];
  },
  async workloads({ client, namespace }, { before }) {
    const type = workloadType(before.slice(0, -1));
    return type === undefined ? [] : namesOf((await client.resource(type.resource).list({ namespace })).items);
  },
  'deferring-pods': async (target) =>
    namesOf((await podsOf(target)).filter(({ spec }) => (spec?.deferContainers ?? []).length > 0)),
  namespaces: async ({ client }) => namesOf((await client.resource(NAMESPACES).list()).items),
  containers: async (target, { operands }) => podContainers(await podOf(target, operands)).map(({ name }) => name),
  entries: async (target, { operands }) =>
    (await podOf(target, operands)).spec?.deferContainers?.map(({ name }) => name) ?? [],
  async images({ client }, { typed }) {
    const { items } = await client.resource<Node>(NODES).list();
    const images = items.flatMap(({ status }) => (status?.images ?? []).map((image) => image.names ?? []));
    const names = images.filter((each) => !each.some(isSandboxImage)).flat();
    return names.map((name) => (typed !== '' && name.startsWith(typed) ? name : familiarName(name)));
  },
};

const contextsOf = (options: TargetOptions): string[] =>
  kubeconfigPaths(options, process.env, () => false)
    .map((path) => parse(readFileSync(path, 'utf8')) as { contexts?: { name: string }[] })
    .flatMap(({ contexts = [] }) => contexts.map(({ name }) => name));
