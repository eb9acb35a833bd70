/**
 * Maintains the mirror Pods, which show the node's static Pods in the API.
 *
 * Boundary: no static Pod waits for its mirror; failed requests are retried.
 * Source: pkg/kubelet/pod/mirror_client.go and tryReconcileMirrorPods of v1.33.
 */

import { isMirrorPod, MIRROR_ANNOTATION, mirroredUid } from '../../api/core/v1/pod/mirror.ts';
import { hasEnded } from '../../api/core/v1/pod/status/final-phase.ts';
import type { Node, Pod, PodStatus } from '../../api/generated/types.ts';
import { NODES, PODS } from '../../api/resources.ts';
import type { Client, ResourceClient } from '../../client/client.ts';
import { createWorkQueue } from '../../client/work-queue.ts';
import { uidOf } from '../../machinery/meta.ts';
import { isApiError } from '../../machinery/status.ts';
import type { Log, Timers } from '../../platform/platform.ts';
import type { NodeConnection, PodRef } from '../../ports/node-connection.ts';

export interface MirrorsOptions {
  client: Client;
  nodeName: string;
  timers: Timers;
  log: Log;
  signal: AbortSignal;
  /** Returns the static Pod with its newest status; undefined: there is none. `fullName`: namespace/name. */
  podOf(fullName: string): Pod | undefined;
  writeStatus(mirror: Pod, status: PodStatus): Promise<void>;
}

export interface Mirrors {
  /** Called when the static Pod has started, changed or ended. Reconciles its mirror in the background. */
  changed(fullName: string): void;
  /** Called when a mirror of this node was added, changed or removed in the API. Reconciles the mirror in the background. */
  seen(mirror: Pod, removed: boolean): void;
  /** Returns the UID of the static Pod whose mirror has this UID; undefined: there is no such mirror. */
  mirrored(uid: string): string | undefined;
}

export const fullNameOf = ({ metadata }: Pod): string => `${metadata.namespace}/${metadata.name}`;

export function createMirrors(options: MirrorsOptions): Mirrors {
  const { client, nodeName, timers, log, signal, podOf } = options;
  const pods = client.resource<Pod>(PODS);
  const nodes = client.resource<Node>(NODES);
  const mirrors = new Map<string, Pod>();
  /** The last status written to each mirror, as JSON, by the mirror's UID. */
  const statuses = new Map<string, string>();
  const queue = createWorkQueue({ name: 'mirror-pods', process: reconcile, timers, log, signal });

  async function reconcile(fullName: string): Promise<void> {
    const pod = podOf(fullName);
    const found = mirrors.get(fullName);
    if (found !== undefined && !shows(found, pod)) await remove(found, 0);
    if (pod === undefined) return;
    const graceSeconds = pod.metadata.deletionGracePeriodSeconds;
    // The API removes the mirror of a Pod that has ended as soon as the mirror is deleted. A new one would end in the same way.
    if (graceSeconds !== undefined && hasEnded(pod) && !mirrors.has(fullName)) return;
    const mirror = mirrors.get(fullName) ?? (await create(pod));
    await write(mirror, pod.status);
    const { deletionTimestamp } = mirror.metadata;
    if (graceSeconds !== undefined && deletionTimestamp === undefined) await remove(mirror, graceSeconds);
  }

  async function remove(mirror: Pod, gracePeriodSeconds: number): Promise<void> {
    await deleteMirror(pods, mirror, gracePeriodSeconds);
    if (gracePeriodSeconds === 0) forget(mirror);
  }

  async function create(pod: Pod): Promise<Pod> {
    const wanted = mirrorOf(pod, await nodes.get(nodeName));
    const mirror = await pods.create(wanted).catch(async (error: unknown) => {
      if (!isApiError(error, 'AlreadyExists')) throw error;
      const other = await readOther(pods, pod, error);
      // This node created the mirror, but the watch has not reported the mirror yet.
      if (shows(other, pod)) return other;
      if (isMirrorPod(other)) await remove(other, 0);
      throw error;
    });
    mirrors.set(fullNameOf(pod), mirror);
    return mirror;
  }

  async function write(mirror: Pod, status: PodStatus | undefined): Promise<void> {
    const uid = uidOf(mirror);
    const text = JSON.stringify(status);
    if (status === undefined || statuses.get(uid) === text) return;
    await options.writeStatus(mirror, status);
    statuses.set(uid, text);
  }

  function forget(mirror: Pod): void {
    const uid = uidOf(mirror);
    if (mirrors.get(fullNameOf(mirror))?.metadata.uid === uid) mirrors.delete(fullNameOf(mirror));
    statuses.delete(uid);
  }

  return {
    changed: (fullName) => queue.add(fullName),
    seen(mirror, removed) {
      if (removed) forget(mirror);
      else mirrors.set(fullNameOf(mirror), mirror);
      queue.add(fullNameOf(mirror));
    },
    mirrored(uid) {
      for (const mirror of mirrors.values()) if (mirror.metadata.uid === uid) return mirroredUid(mirror);
      return undefined;
    },
  };
}

/**
 * With a grace period, the mirror is marked as terminating, like its Pod; with 0, the mirror is removed. Does nothing if the mirror no
 * longer exists, even if another Pod has its name.
 */
async function deleteMirror(pods: ResourceClient<Pod>, mirror: Pod, gracePeriodSeconds: number): Promise<void> {
  const { name, namespace, uid } = mirror.metadata;
  try {
    await pods.delete(name, namespace, { gracePeriodSeconds, preconditions: { uid } });
  } catch (error) {
    if (!isApiError(error, 'NotFound') && !isApiError(error, 'Conflict')) throw error;
  }
}

/** Rejects with `taken` if the API forbids reading the Pod, as for a Pod of another node. */
async function readOther(pods: ResourceClient<Pod>, { metadata }: Pod, taken: unknown): Promise<Pod> {
  try {
    return await pods.get(metadata.name, metadata.namespace);
  } catch (error) {
    throw isApiError(error, 'Forbidden') ? taken : error;
  }
}

function mirrorOf(pod: Pod, node: Node): Pod {
  const { name, namespace, labels, annotations } = pod.metadata;
  const owner = { apiVersion: 'v1', kind: 'Node', name: node.metadata.name, uid: uidOf(node), controller: true };
  const metadata = {
    name,
    namespace,
    labels,
    annotations: { ...annotations, [MIRROR_ANNOTATION]: uidOf(pod) },
    ownerReferences: [owner],
  };
  return { apiVersion: 'v1', kind: 'Pod', metadata, spec: pod.spec };
}

/** Clients of the API know only the UID of a static Pod's mirror. `ownUid` converts this UID to the UID of the static Pod. */
export function throughMirrors(node: NodeConnection, ownUid: (uid: string) => string): NodeConnection {
  const own = (pod: PodRef): PodRef => ({ ...pod, uid: ownUid(pod.uid) });
  return {
    logs: (pod, ...query) => node.logs(own(pod), ...query),
    exec: (pod, ...query) => node.exec(own(pod), ...query),
    execTurn: (signal) => node.execTurn(signal),
    attach: (pod, ...query) => node.attach(own(pod), ...query),
    portForward: (pod, ...query) => node.portForward(own(pod), ...query),
  };
}

/**
 * A terminating mirror shows the Pod only if the Pod is terminating as well. Otherwise, a new mirror replaces it: the Pod has started again
 * with the same UID, or a client has deleted the mirror and a finalizer keeps it.
 */
const shows = (mirror: Pod, pod: Pod | undefined): boolean =>
  pod !== undefined &&
  mirroredUid(mirror) === pod.metadata.uid &&
  (mirror.metadata.deletionTimestamp === undefined || pod.metadata.deletionTimestamp !== undefined);
