/** Finds the names that complete a word: asks the API server or reads the kubeconfig. */
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import type { Node, Pod } from '../../api/generated/types.ts';
import { NAMESPACES, NODES, PODS } from '../../api/resources.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import { podContainers } from '../pod-containers.ts';
import { podName } from '../records.ts';
import { kubeconfigPaths, resolveTarget, type Target, type TargetOptions } from '../target.ts';
import type { NameKind, Suggestion } from './suggest.ts';

type Wanted = Extract<Suggestion, { kind: 'names' }>;

/** Resolves with the names that begin with the typed text, in alphabetical order. Rejects if they cannot be found. */
export async function findNames({ names, options, operands, typed }: Wanted): Promise<string[]> {
  const given: TargetOptions = {
    namespace: options.get('--namespace'),
    dataDir: options.get('--data-dir'),
    kubeconfig: options.get('--kubeconfig'),
    context: options.get('--context'),
  };
  const found = names === 'contexts' ? contextsOf(given) : await FINDERS[names](await resolveTarget(given), operands);
  return [...new Set(found)].filter((name) => name.startsWith(typed)).sort();
}

const namesOf = (objects: readonly KubeObject[]): string[] => objects.map(({ metadata }) => metadata.name);

const podsOf = async ({ client, namespace }: Target): Promise<Pod[]> =>
  (await client.resource<Pod>(PODS).list({ namespace })).items;

const podOf = ({ client, namespace }: Target, [name = '']: readonly string[]): Promise<Pod> =>
  client.resource<Pod>(PODS).get(podName(name), namespace);

const FINDERS: Record<
  Exclude<NameKind, 'contexts'>,
  (target: Target, operands: readonly string[]) => Promise<string[]>
> = {
  pods: async (target) => namesOf(await podsOf(target)),
  'deferring-pods': async (target) =>
    namesOf((await podsOf(target)).filter(({ spec }) => (spec?.deferContainers ?? []).length > 0)),
  namespaces: async ({ client }) => namesOf((await client.resource(NAMESPACES).list()).items),
  containers: async (target, operands) => podContainers(await podOf(target, operands)).map(({ name }) => name),
  entries: async (target, operands) =>
    (await podOf(target, operands)).spec?.deferContainers?.map(({ name }) => name) ?? [],
  images: async ({ client }) => {
    const { items } = await client.resource<Node>(NODES).list();
    return items.flatMap(({ status }) => (status?.images ?? []).flatMap((image) => image.names ?? []));
  },
};

/** Returns the names of the contexts in the kubeconfigs that the options select. Throws if a file cannot be read or parsed. */
const contextsOf = (options: TargetOptions): string[] =>
  kubeconfigPaths(options, process.env, () => false)
    .map((path) => parse(readFileSync(path, 'utf8')) as { contexts?: { name: string }[] })
    .flatMap(({ contexts = [] }) => contexts.map(({ name }) => name));
