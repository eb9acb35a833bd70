/**
 * A cluster whose nodes are simulated: the real registry, API server, scheduler and controllers, and a real node agent for each node. The
 * agent runs Pods on a simulated runtime, without processes.
 *
 * A test declares the cluster with `await using`, so that everything is stopped and removed even if the test fails. In virtual time, the
 * clock advances only during the methods of the cluster that wait: until(), during() and the functions that start nodes.
 *
 * Each component has the rights of its user. The end of the cluster fails the test if a request of a component was refused.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Namespace, Node, ServiceAccount } from '../../../src/api/generated/types.ts';
import { NAMESPACES, NODES, SERVICE_ACCOUNTS } from '../../../src/api/resources.ts';
import type { Client } from '../../../src/client/client.ts';
import { clientFor } from '../../../src/engine/users.ts';
import type { KubeObject, ResourceRef } from '../../../src/machinery/meta.ts';
import { isApiError } from '../../../src/machinery/status.ts';
import type { Millis } from '../../../src/machinery/time.ts';
import { unmountUnder } from '../../../src/node/volumes/mounts.ts';
import { onAbort } from '../../../src/platform/on-abort.ts';
import { pause } from '../../../src/platform/pause.ts';
import type { Log, Timers } from '../../../src/platform/platform.ts';
import { silentLog } from '../../../src/platform/silent-log.ts';
import type { UserInfo } from '../../../src/ports/request.ts';
import { type ClusterTime, clusterTime } from './cluster-time.ts';
import { CLUSTER_DNS, CLUSTER_DOMAIN, type ControlPlane, startControlPlane } from './control-plane.ts';
import { connectionTo } from './node-connections.ts';
import {
  type ContainerScript,
  createSimulatedNode,
  type NodeSpec,
  type SimulatedNode,
  type SimulatedRun,
} from './simulated-node.ts';

export type { ContainerScript, NodeSpec, SimulatedNode, SimulatedRun } from './simulated-node.ts';

export interface SimulatedClusterOptions {
  /** The number of nodes, named node-1 and so on, or a specification of each. */
  nodes: number | readonly NodeSpec[];
  /** By default real. */
  time?: 'real' | 'virtual';
  /** By default in memory. In virtual time, only `memory` is possible. */
  store?: 'memory' | 'lmdb';
  /** Whether kubectl can be used; by default false. Only possible in real time. */
  https?: boolean;
  /** By default true. */
  controllers?: boolean;
  /** Returns the script of each run of a container. By default, a container runs until it is stopped. */
  script?: (run: SimulatedRun) => ContainerScript;
  /** The images that each node has; others are pulled. */
  images?: string[];
  log?: Log;
}

export interface SimulatedCluster extends AsyncDisposable {
  readonly timers: Timers;
  /** Without nodes that have been removed. */
  readonly nodes: ReadonlyMap<string, SimulatedNode>;
  /** With the rights of the administrator. */
  readonly client: Client;
  /** The client has the rights of the user. */
  clientOf(user: UserInfo): Client;
  /** The path of the administrator's kubeconfig; undefined without `https`. */
  readonly kubeconfig: string | undefined;
  node(name: string): SimulatedNode;
  /** Also starts the agent of the node. */
  addNode(spec?: NodeSpec): Promise<SimulatedNode>;
  /** Starts the agent of a node after SimulatedNode.kill(). */
  restart(name: string): Promise<void>;
  /** Also kills the agent of the node. */
  removeNode(name: string): Promise<void>;
  /** The Pods of the namespace get no token, so that nothing has to be mounted for them. */
  createNamespace(name: string): Promise<void>;
  /**
   * Resolves with the objects of the resource once `isTrue` returns true for them. Rejects with the last objects after `limit`, by default
   * 10 minutes.
   */
  until<T extends KubeObject>(
    ref: ResourceRef,
    isTrue: (objects: readonly T[]) => boolean,
    limit?: Millis,
  ): Promise<readonly T[]>;
  during<T>(work: Promise<T>, limit?: Millis): Promise<T>;
  /** Lets virtual time pass. Rejects in real time, because a test must wait for an event there. */
  pass(millis: Millis): Promise<void>;
}

const ADMIN: UserInfo = { name: 'kubernetes-admin', groups: ['system:masters', 'system:authenticated'] };

/**
 * Starts a cluster with the namespace `default`. Resolves when all agents have started; the nodes may not be Ready yet. Rejects if `https`
 * or the store `lmdb` is combined with virtual time.
 */
export async function startSimulatedCluster(options: SimulatedClusterOptions): Promise<SimulatedCluster> {
  if (options.time === 'virtual' && (options.https || options.store === 'lmdb'))
    throw new Error('in virtual time, a simulated cluster has a store in memory and no HTTPS server');
  const closers = new AsyncDisposableStack();
  try {
    const folder = await mkdtemp(join(tmpdir(), 'lifepod-simulated-'));
    closers.defer(() => removeFolder(folder));
    const time = clusterTime(options.time ?? 'real');
    const ending = new AbortController();
    const nodes = new Map<string, SimulatedNode>();
    const platform = { timers: time.timers, log: options.log ?? silentLog };
    const { store = 'memory', https = false, controllers = true } = options;
    const given = { ...platform, folder, store, https, nodes: connectionTo(nodes), signal: ending.signal };
    const plane = await startControlPlane(given, closers);
    closers.defer(() => {
      for (const node of nodes.values()) node.kill();
      ending.abort();
    });
    const cluster = clusterOf(options, { folder, time, nodes, plane, closers, signal: ending.signal });
    await time.during(plane.startLoops({ controllers }));
    await cluster.createNamespace('default');
    const specs = typeof options.nodes === 'number' ? Array<NodeSpec>(options.nodes).fill({}) : options.nodes;
    await Promise.all(specs.map((spec) => cluster.addNode(spec)));
    return cluster;
  } catch (error) {
    await closers.disposeAsync();
    throw error;
  }
}

interface Parts {
  folder: string;
  time: ClusterTime;
  nodes: Map<string, SimulatedNode>;
  plane: ControlPlane;
  closers: AsyncDisposableStack;
  signal: AbortSignal;
}

function clusterOf(options: SimulatedClusterOptions, parts: Parts): SimulatedCluster {
  const { folder, time, nodes, plane, closers } = parts;
  const { registry, informersOf, kubeconfig } = plane;
  const { timers, during } = time;
  const client = clientFor(registry, ADMIN);
  const { log = silentLog, images = ['busybox:1.28'], script = () => ({}) } = options;
  const dns = { clusterDns: CLUSTER_DNS, clusterDomain: CLUSTER_DOMAIN };
  const shared = { backend: registry, informersOf, folder, images, script, timers, log, ...dns };
  let numbers = 0;
  const node = (name: string): SimulatedNode => {
    const found = nodes.get(name);
    if (found === undefined) throw new Error(`there is no node ${name}`);
    return found;
  };
  return {
    timers,
    nodes,
    client,
    clientOf: (user) => clientFor(registry, user),
    kubeconfig,
    node,
    async addNode(spec = {}) {
      const added = createSimulatedNode({ ...shared, number: ++numbers, spec });
      nodes.set(added.name, added);
      await during(added.start());
      return added;
    },
    restart: (name) => during(node(name).start()),
    async removeNode(name) {
      node(name).kill();
      nodes.delete(name);
      await during(client.resource<Node>(NODES).delete(name));
    },
    createNamespace: (name) => during(createNamespace(client, name)),
    until: (ref, isTrue, limit) => {
      const watched = untilObjects(plane, parts.signal, ref, isTrue);
      return during(watched.found, limit)
        .catch((error: Error) => {
          throw new Error(`${ref.resource}: ${error.message}: ${watched.seen()}`);
        })
        .finally(watched.end);
    },
    during,
    async pass(millis) {
      if (options.time !== 'virtual') throw new Error('only virtual time can pass');
      await during(pause(timers, millis), millis + 1);
    },
    async [Symbol.asyncDispose]() {
      await closers.disposeAsync();
      if (plane.refusals.length > 0) throw new Error(plane.refusals.slice(0, 10).join('\n'));
    },
  };
}

async function createNamespace(client: Client, name: string): Promise<void> {
  const unlessExists = (error: unknown): void => {
    if (!isApiError(error, 'AlreadyExists')) throw error;
  };
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name } };
  await client.resource<Namespace>(NAMESPACES).create(namespace).catch(unlessExists);
  const accounts = client.resource<ServiceAccount>(SERVICE_ACCOUNTS);
  const withoutToken = { automountServiceAccountToken: false };
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default', namespace: name } };
  await accounts.create({ ...account, ...withoutToken }).catch(unlessExists);
  await accounts.patch('default', name, 'application/merge-patch+json', withoutToken);
}

interface Watched<T> {
  found: Promise<readonly T[]>;
  seen(): string;
  end(): void;
}

function untilObjects<T extends KubeObject>(
  { informers }: ControlPlane,
  ending: AbortSignal,
  ref: ResourceRef,
  isTrue: (objects: readonly T[]) => boolean,
): Watched<T> {
  const enough = new AbortController();
  const signal = AbortSignal.any([ending, enough.signal]);
  const found = Promise.withResolvers<readonly T[]>();
  let isDue = false;
  const look = (): void => {
    isDue = false;
    const objects = [...followed.list()];
    try {
      if (isTrue(objects)) found.resolve(objects);
    } catch (error) {
      found.reject(error);
    }
  };
  /** Checks the objects once after all changes of one turn of the event loop. */
  const changed = (): void => {
    if (!isDue) setImmediate(look);
    isDue = true;
  };
  const followed = informers.follow<T>(ref, { signal }, { added: changed, updated: changed, deleted: changed });
  void followed.synced.then(changed);
  onAbort(ending, () => found.reject(new Error('the cluster has ended')));
  const shown = ({ metadata, status }: KubeObject & { status?: object }): string =>
    `${metadata.namespace ?? ''}/${metadata.name} ${JSON.stringify(status)}`;
  return {
    found: found.promise,
    seen: () => [...followed.list()].map(shown).join('\n').slice(0, 4000),
    end: () => enough.abort(),
  };
}

async function removeFolder(folder: string): Promise<void> {
  await unmountUnder(folder, new AbortController().signal);
  // A killed agent may still write files while the folder is removed.
  await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 20 });
}
