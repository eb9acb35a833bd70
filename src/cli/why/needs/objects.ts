/** Explains messages of the node about objects and other things of the API that a Pod refers to. Pure. */
import { type AnyContainer, containersOf } from '../../../api/core/v1/pod/containers.ts';
import type { Pod, Volume } from '../../../api/generated/types.ts';
import type { Action, EntryNeed, Living } from '../subject.ts';
import { subPathFinding } from './sub-paths.ts';

export interface Finding {
  /** A verb phrase that follows the name of the container or of the Pod and names the cause. */
  cause: string;
  actions: Action[];
}

export type Needing = Pick<Living, 'namespace' | 'hints' | 'pod'>;

export const KINDS = ['ConfigMap', 'Secret'] as const;
export type Kind = (typeof KINDS)[number];

const CREATE: Readonly<Record<Kind, string>> = { ConfigMap: 'create configmap', Secret: 'create secret generic' };

/** Explains a message about an object, a key, a container, a variable or a subPath that does not exist; undefined for other messages. */
export const objectFinding = (subject: Needing, text: string): Finding | undefined =>
  missingObject(subject, text) ??
  missingKey(subject, text) ??
  missingAccount(subject, text) ??
  missingContainer(subject, text) ??
  subPathFinding(subject.pod, text);

function missingObject({ namespace, hints, pod }: Needing, text: string): Finding | undefined {
  const [, type, name] = /\b(configmap|secret) "(?:[^"/]*\/)?([^"/]+)" not found/.exec(text) ?? [];
  if (name === undefined) return undefined;
  const kind = type === 'secret' ? 'Secret' : 'ConfigMap';
  return ofObject({ namespace, hints, pod }, kind, name, RETRIES);
}

const RETRIES = ', and the node retries automatically';

/** Explains that the object does not exist. `effect`: the end of the advice to create it. */
function ofObject({ namespace, hints, pod }: Needing, kind: Kind, name: string, effect: string): Finding {
  const keys = referencesOf(pod, kind).flatMap((each) => (each.name === name ? keysOf(each) : []));
  const literals = (keys.length > 0 ? [...new Set(keys)] : ['KEY'])
    .map((key) => `--from-literal=${key}=VALUE`)
    .join(' ');
  return {
    cause: `needs the ${kind} ${name}, which does not exist in namespace ${namespace}`,
    actions: [
      {
        description: `create the ${kind}${effect}`,
        command: hints.kubectl(`${CREATE[kind]} ${name} -n ${namespace} ${literals}`),
      },
    ],
  };
}

function missingKey({ namespace, hints, pod }: Needing, text: string): Finding | undefined {
  const [, ofVariable, kind, holder] =
    /couldn't find key (\S+) in (ConfigMap|Secret) (?:[^/\s]*\/)?([^\s:,]+)/.exec(text) ?? [];
  if (ofVariable !== undefined && holder !== undefined)
    return ofKey({ namespace, hints }, kind as Kind, [holder], ofVariable, RETRIES);
  // Upstream's message about a volume does not name the object, so the names come from the Pod's volumes that require the key.
  const [, type, key] = /references non-existent (config|secret) key: (\S+)/.exec(text) ?? [];
  if (key === undefined) return undefined;
  const volume = /for volume "([^"]+)"/.exec(text)?.[1];
  const volumes = (pod.spec?.volumes ?? []).filter(({ name }) => volume === undefined || name === volume);
  const wanted: Kind = type === 'secret' ? 'Secret' : 'ConfigMap';
  const holders = volumes.flatMap((each) =>
    ofVolume(each, wanted).flatMap((source) => (keysOf(source).includes(key) ? (source.name ?? []) : [])),
  );
  return holders.length === 0 ? undefined : ofKey({ namespace, hints }, wanted, [...new Set(holders)], key, RETRIES);
}

function ofKey(
  { namespace, hints }: Pick<Needing, 'namespace' | 'hints'>,
  kind: Kind,
  names: readonly string[],
  key: string,
  effect: string,
): Finding {
  return {
    cause: `needs the key ${key} of the ${kind} ${names.join(' or ')}, which does not have this key`,
    actions: names.map((name) => ({
      description: `add the key${effect}`,
      command: hints.kubectl(`edit ${kind.toLowerCase()} ${name} -n ${namespace}`),
    })),
  };
}

/** Explains that an object or key that a defer container of a running Pod needs does not exist. */
export function entryFinding(subject: Needing, { kind, name, key }: EntryNeed): Finding {
  const effect = ' before the Pod ends';
  // The node uses its copy only if the object does not exist.
  return key === undefined
    ? ofObject(subject, kind, name, `${effect}, unless its node has a copy`)
    : ofKey(subject, kind, [name], key, effect);
}

/** Admission refuses a Pod without its ServiceAccount, so the account has been deleted since. */
function missingAccount({ namespace, hints }: Needing, text: string): Finding | undefined {
  const [, name] = /failed to fetch token: serviceaccounts "([^"]+)" not found/.exec(text) ?? [];
  if (name === undefined) return undefined;
  return {
    cause: `needs a token of the ServiceAccount ${name}, which does not exist in namespace ${namespace}`,
    actions: [
      {
        description: 'create the ServiceAccount, and the node retries automatically',
        command: hints.kubectl(`create serviceaccount ${name} -n ${namespace}`),
      },
    ],
  };
}

/** Source: src/node/container/downward.ts (the message). The runtime has a similar one, with an ID instead of a name. */
function missingContainer({ pod }: Needing, text: string): Finding | undefined {
  const [, name] = /(?:^|: )container (\S+) not found$/.exec(text) ?? [];
  const isInPod = containersOf(pod).some((each) => each.name === name);
  if (name === undefined || isInPod || !resourceContainers(pod).has(name)) return undefined;
  return {
    cause: `has a resourceFieldRef to the container ${name}, which the Pod does not have`,
    actions: [{ description: 'correct the containerName of the resourceFieldRef, and recreate the Pod' }],
  };
}

/** Returns the names that occur as containerName in a resourceFieldRef. */
function resourceContainers(pod: Pod): ReadonlySet<string> {
  const variables = containersOf(pod).flatMap(({ env = [] }) => env.map(({ valueFrom }) => valueFrom));
  const files = (pod.spec?.volumes ?? []).flatMap(({ downwardAPI, projected }) => [
    ...(downwardAPI?.items ?? []),
    ...(projected?.sources ?? []).flatMap((source) => source.downwardAPI?.items ?? []),
  ]);
  return new Set([...variables, ...files].flatMap((each) => each?.resourceFieldRef?.containerName ?? []));
}

export interface Reference {
  name?: string | undefined;
  key?: string;
  items?: { key: string }[] | undefined;
  optional?: boolean | undefined;
}

/** Returns the keys that must exist. */
const keysOf = ({ key, items = [], optional }: Reference): string[] =>
  optional === true ? [] : key === undefined ? items.map((item) => item.key) : [key];

function ofVolume({ configMap, secret, projected }: Volume, kind: Kind): Reference[] {
  const isSecret = kind === 'Secret';
  const own = isSecret ? secret && { ...secret, name: secret.secretName } : configMap;
  const sources = (projected?.sources ?? []).map((source) => (isSecret ? source.secret : source.configMap));
  return [own, ...sources].filter((each) => each !== undefined);
}

/** Returns the references to ConfigMaps or Secrets in the environment of the container. A reference of `envFrom` has no key. */
export function environmentOf({ env = [], envFrom = [] }: AnyContainer, kind: Kind): Reference[] {
  const isSecret = kind === 'Secret';
  const whole = envFrom.map(({ secretRef, configMapRef }) => (isSecret ? secretRef : configMapRef));
  const keys = env.map(({ valueFrom }) => (isSecret ? valueFrom?.secretKeyRef : valueFrom?.configMapKeyRef));
  return [...keys, ...whole].filter((each) => each !== undefined);
}

const referencesOf = (pod: Pod, kind: Kind): Reference[] => [
  ...containersOf(pod).flatMap((each) => environmentOf(each, kind)),
  ...(pod.spec?.volumes ?? []).flatMap((volume) => ofVolume(volume, kind)),
];
