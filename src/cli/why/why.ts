/** `lifepod why`: explains the state of a Pod in one sentence, followed by the evidence and what to do. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { CoreV1Event, Node, Pod, Secret } from '../../api/generated/types.ts';
import { EVENTS, NODES, PODS, SECRETS } from '../../api/resources.ts';
import type { Client } from '../../client/client.ts';
import type { HttpClient } from '../../client/http-client.ts';
import { queryText, resourcePath } from '../../client/paths.ts';
import { readEngineRecord } from '../../engine/settings.ts';
import { ApiError, isApiError } from '../../machinery/status.ts';
import { shellQuoted } from '../../platform/programs/typed-program.ts';
import { containerdPaths } from '../../runtime/containerd/paths.ts';
import { repositoryOf } from '../../runtime/images/references.ts';
import type { Hints } from '../hints.ts';
import { type PodContainer, podContainers, wantedImage } from '../pod-containers.ts';
import { printLine } from '../progress/standard-output.ts';
import { isUnreachable } from '../pull-reason.ts';
import { findLife, type PodLife, transitionsOf } from '../records.ts';
import { pullSecretsOf } from '../registries/registry-advice.ts';
import { engineStartOf, unreportedNode } from '../service/engine-start.ts';
import { manifestOf, withManifest } from '../status/manifest-troubles.ts';
import { resolveTarget, type Target, type TargetOptions } from '../target.ts';
import { explainWorkload } from '../workloads/why-workload.ts';
import { workloadName } from '../workloads/workloads.ts';
import { explain } from './explain.ts';
import { isPreempting } from './needs/preemption.ts';
import { readBoundVolumes, unboundClaimsReader } from './needs/read-claims.ts';
import { entryNeedsReader } from './needs/read-entry-needs.ts';
import { waitsForPort } from './scheduling.ts';
import { mayBeCut, rebootOf } from './stops/reboot.ts';
import { type Action, type Explanation, listed, type WorkloadRef } from './subject.ts';

const UNREAD = 'the record of the Pod is not considered: this user may not read PodRecords, which the role view allows';
const LOG_LINES = 3;
const LOG_DEADLINE_MILLIS = 5000;

export interface WhyOptions extends TargetOptions {
  output?: 'json';
}

export async function why(given: string, options: WhyOptions): Promise<void> {
  const target = await resolveTarget(options);
  const wanted = workloadName(given);
  const isJson = options.output === 'json';
  if (wanted !== undefined) {
    const found = await explainWorkload(target, wanted, (life, workload) => explainLife(target, life, workload));
    const { workload, life, explanation } = found;
    printLine(isJson ? jsonText(life, explanation, { workload }) : plainText(explanation));
    return;
  }
  const life = await findLife(target.client, target.namespace, given, target.hints);
  const explanation = await explainLife(target, life);
  printLine(isJson ? jsonText(life, explanation) : plainText(explanation));
}

async function explainLife(target: Target, life: PodLife, workload?: WorkloadRef): Promise<Explanation> {
  const { client, hints, engineFolder } = target;
  const { name, namespace, uid, pod, records } = life;
  const nodeName = pod === undefined ? records.at(-1)?.nodeName : pod.spec?.nodeName;
  const [events, lastLines, nodes, pullSecrets, otherPods, rebootedAt, unboundClaims, boundVolumes, entryNeeds] =
    await Promise.all([
      eventsOf(client, namespace, uid),
      pod === undefined ? {} : lastLinesOf(client, pod),
      nodesOf(client, nodeName),
      pod && readPullSecrets(client, pod),
      pod && (waitsForPort(pod) || isPreempting(pod)) ? podsOf(client) : undefined,
      pod !== undefined && nodeName !== undefined && mayBeCut(pod) ? rebootOf(client, nodeName) : undefined,
      pod && unboundClaimsReader(client)(pod),
      pod && readBoundVolumes(client, pod),
      pod && entryNeedsReader(client)(pod),
    ]);
  const node = pod?.spec?.nodeName === undefined && pod !== undefined ? undefined : nodes?.[0];
  const transitions = transitionsOf(records);
  const now = Date.now();
  const engine = node && engineFolder !== undefined ? engineStartOf(engineFolder, now) : undefined;
  const unreported = node && engine && unreportedNode(node, engine);
  const claims = { unboundClaims, boundVolumes };
  const cluster = { node, nodes, pullSecrets, otherPods, entryNeeds, unreported, rebootedAt };
  const read = { ...cluster, ...claims, events, lastLines, transitions };
  const isLocal = pod !== undefined && engineFolder !== undefined;
  const manifest = isLocal ? await manifestOf(pod, engineFolder, now) : undefined;
  const ofPod = explain({ name, namespace, pod, ...read, manifest: manifest?.path, workload, hints, now });
  const explained = withManifest(ofPod, manifest);
  const settings = isLocal ? registryActions(pod, engineFolder, hints) : [];
  const found = { ...explained, actions: [...explained.actions, ...settings] };
  return life.isUnread === true ? { ...found, evidence: [...found.evidence, UNREAD] } : found;
}

/**
 * Returns an action for each hosts.toml of a registry from which an image cannot be pulled. The private containerd only logs a mistake in
 * this file, and reports the failure of the registry itself, not that a mirror, which it asks first, does not have the image.
 */
export function registryActions(pod: Pod, engineFolder: string, hints: Pick<Hints, 'asRoot'>): Action[] {
  if (!hasPrivateRuntime(engineFolder)) return [];
  const { registries, log } = containerdPaths(engineFolder);
  const files = new Map<string, string>();
  for (const each of podContainers(pod).filter(isPullFailed)) {
    const [registry = ''] = repositoryOf(wantedImage(pod, each).reference).split('/');
    const possible = registries.flatMap((folder) => [registry, '_default'].map((name) => join(folder, name)));
    const folder = possible.find((path) => existsSync(path));
    const file = join(folder ?? '', 'hosts.toml');
    if (folder === undefined || !existsSync(file)) continue;
    const mirrors = lackingMirrors(file, each.status?.state?.waiting?.message);
    if (mirrors.length > 0 || !files.has(file)) files.set(file, checkFile(file, mirrors));
  }
  return [...files.values()].map((description) => ({
    description,
    command: hints.asRoot(`grep hosts.toml ${shellQuoted(log)}`),
  }));
}

const checkFile = (file: string, mirrors: readonly string[]): string =>
  mirrors.length === 0
    ? `check ${file}, which configures its registry; containerd logs whether it can be read`
    : `check the name of the image: ${listed(mirrors)}, which ${file} names, is asked before the registry and probably does not have it; containerd logs whether this file can be read`;

/** Returns the mirrors that probably lack the image: the message is about the registry, which is asked after them. */
function lackingMirrors(file: string, message = ''): string[] {
  if (!isUnreachable(message)) return [];
  try {
    const mirrors = [...readFileSync(file, 'utf8').matchAll(MIRROR)].flatMap(([, url = '']) => url);
    return mirrors.some((url) => message.includes(url.replace(/^https?:\/\//, ''))) ? [] : mirrors;
  } catch {
    return [];
  }
}

/** A mirror in containerd's hosts.toml, such as `[host."http://localhost:5000"]`. */
const MIRROR = /^\s*\[\s*host\s*\.\s*["']([^"']+)["']\s*\]/gm;

/** Returns false if the user may not read the record of the engine. */
function hasPrivateRuntime(engineFolder: string): boolean {
  try {
    return readEngineRecord(engineFolder)?.containerRuntimeEndpoint === undefined;
  } catch {
    return false;
  }
}

const FAILED_PULLS = ['ErrImagePull', 'ImagePullBackOff'];
const isPullFailed = ({ status }: PodContainer): boolean => FAILED_PULLS.includes(status?.state?.waiting?.reason ?? '');

/** Resolves with the imagePullSecrets that exist; with undefined if no pull failed, or if the user may not read one of them. */
export async function readPullSecrets(client: Client, pod: Pod): Promise<Secret[] | undefined> {
  if (!podContainers(pod).some(isPullFailed)) return undefined;
  const secrets = client.resource<Secret>(SECRETS);
  const read = (name: string): Promise<Secret[]> =>
    secrets.get(name, pod.metadata.namespace).then(
      (secret) => [secret],
      (error: unknown) => {
        if (isApiError(error, 'NotFound')) return [];
        throw error;
      },
    );
  try {
    return (await Promise.all(pullSecretsOf(pod).map(read))).flat();
  } catch (error) {
    // The Secrets only make the advice more precise.
    if (error instanceof ApiError) return undefined;
    throw error;
  }
}

function plainText({ sentence, evidence, actions }: Explanation): string {
  const lines =
    actions.length === 0
      ? ['there is nothing to do']
      : actions.map(({ description, command }) => `${description}${command === undefined ? '' : `: ${command}`}`);
  return [sentence, ...evidence.map((line) => `  - ${line}`), ...lines.map((line) => `  > ${line}`)].join('\n');
}

/** README.md documents the fields. `life` is undefined for a workload without Pods. */
function jsonText(life: PodLife | undefined, explanation: Explanation, more: object = {}): string {
  const { sentence, evidence, actions } = explanation;
  const pod = life && {
    name: life.name,
    namespace: life.namespace,
    uid: life.pod?.metadata.uid ?? life.uid,
    exists: life.pod !== undefined,
  };
  return JSON.stringify({ pod, ...more, cause: sentence, evidence, actions }, undefined, 2);
}

/** Reads the Events about the Pod. `uid`: that of the static Pod for a mirror Pod. Resolves with none if the user may not read Events. */
async function eventsOf(client: HttpClient, namespace: string, uid: string): Promise<CoreV1Event[]> {
  const fieldSelector = `involvedObject.kind=Pod,involvedObject.uid=${uid}`;
  const query = { ...(namespace && { namespace }), fieldSelector };
  const { items } = await client
    .resource<CoreV1Event>(EVENTS)
    .list(query)
    .catch((error: unknown) => {
      if (isApiError(error, 'Forbidden')) return { items: [] };
      throw error;
    });
  return items;
}

/**
 * Reads the named node, or all nodes if `name` is empty or undefined. Resolves with an empty list if the node does not exist, and with
 * undefined if the user may not read Nodes.
 */
async function nodesOf(client: HttpClient, name: string | undefined): Promise<Node[] | undefined> {
  const nodes = client.resource<Node>(NODES);
  const found = name ? nodes.get(name).then((node) => [node]) : nodes.list().then(({ items }) => items);
  return found.catch((error: unknown) => {
    if (isApiError(error, 'NotFound')) return [];
    if (isApiError(error, 'Forbidden')) return undefined;
    throw error;
  });
}

/** Reads all Pods. Resolves with undefined if the user may not read those of all namespaces. */
const podsOf = (client: Client): Promise<Pod[] | undefined> =>
  client
    .resource<Pod>(PODS)
    .list({})
    .then(
      ({ items }) => items,
      (error: unknown) => {
        if (isApiError(error, 'Forbidden')) return undefined;
        throw error;
      },
    );

/** Reads the last log lines of each container whose last ended run failed without a termination message. */
async function lastLinesOf(client: HttpClient, pod: Pod): Promise<Record<string, string[]>> {
  const found: Record<string, string[]> = {};
  await Promise.all(
    podContainers(pod).map(async ({ name, status }) => {
      const now = status?.state?.terminated;
      const last = now ?? status?.lastState?.terminated;
      if (last === undefined || last.exitCode === 0 || last.message) return;
      const previous = now === undefined && status?.state?.running !== undefined;
      const lines = await logOf(client, pod, { container: name, tailLines: LOG_LINES, ...(previous && { previous }) });
      found[name] = lines.split('\n').filter((line) => line.trim() !== '');
    }),
  );
  return found;
}

async function logOf(
  client: HttpClient,
  { metadata }: Pod,
  query: { container: string; tailLines: number; previous?: boolean },
): Promise<string> {
  const path = resourcePath(PODS, metadata.namespace, metadata.name, 'log') + queryText(query);
  try {
    return await text(await client.open(path, AbortSignal.timeout(LOG_DEADLINE_MILLIS)));
  } catch {
    return '';
  }
}
