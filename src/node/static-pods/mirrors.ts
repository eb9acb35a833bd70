/**
 * Mirror Pods show the static Pods of the node in the API. For each name, the mirror in the API is reconciled with the Pod that runs.
 *
 * Boundary: no static Pod waits for its mirror; failed requests are retried.
 * Source: pkg/kubelet/pod/mirror_client.go and tryReconcileMirrorPods of v1.33.
 */

import { isMirrorPod, MIRROR_ANNOTATION, mirroredUid } from '../../api/core/v1/pod/mirror.ts';
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
  /** The static Pod of that name (namespace/name), with its newest status. */
  podOf(fullName: string): Pod | undefined;
  /** Writes the status of a Pod in the API. */
  writeStatus(mirror: Pod, status: PodStatus): Promise<void>;
}

export interface Mirrors {
  /** The static Pod of that name has started, changed or ended. */
  changed(fullName: string): void;
  /** A mirror of this node was added, changed or removed in the API. */
  seen(mirror: Pod, removed: boolean): void;
  /** The UID of the static Pod whose mirror has this UID. */
  mirrored(uid: string): string | undefined;
  /** Resolves when every mirror is reconciled, or its request has failed. */
  settled(): Promise<void>;
}

export const fullNameOf = ({ metadata }: Pod): string => `${metadata.namespace}/${metadata.name}`;

export function createMirrors(options: MirrorsOptions): Mirrors {
  const { client, nodeName, timers, log, signal, podOf } = options;
  const pods = client.resource<Pod>(PODS);
  const nodes = client.resource<Node>(NODES);
  const mirrors = new Map<string, Pod>();
  /** The last status written to each mirror, by its UID. */
  const statuses = new Map<string, string>();
  const queue = createWorkQueue({ name: 'mirror-pods', process: reconcile, timers, log, signal });

  async function reconcile(fullName: string): Promise<void> {
    const pod = podOf(fullName);
    const found = mirrors.get(fullName);
    if (found !== undefined && !shows(found, pod)) await remove(found, 0);
    if (pod === undefined) return;
    const mirror = mirrors.get(fullName) ?? (await create(pod));
    await write(mirror, pod.status);
    const graceSeconds = pod.metadata.deletionGracePeriodSeconds;
    const { deletionTimestamp } = mirror.metadata;
    if (graceSeconds !== undefined && deletionTimestamp === undefined) await remove(mirror, graceSeconds);
  }

  async function remove(mirror: Pod, gracePeriodSeconds: number): Promise<void> {
    await deleteMirror(pods, mirror, gracePeriodSeconds);
    if (gracePeriodSeconds === 0) forget(mirror);
  }

  async function create(pod: Pod): Promise<Pod> {
    const { name, namespace } = pod.metadata;
    const wanted = mirrorOf(pod, await nodes.get(nodeName));
    const mirror = await pods.create(wanted).catch(async (error: unknown) => {
      if (!isApiError(error, 'AlreadyExists')) throw error;
      const other = await pods.get(name, namespace);
      // This node created the mirror, and its watch has not reported it yet.
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
    settled: () => queue.idle(),
  };
}

/** With a grace period, the mirror is marked as terminating, like its Pod; without one it is removed. */
async function deleteMirror(pods: ResourceClient<Pod>, mirror: Pod, gracePeriodSeconds: number): Promise<void> {
  const { name, namespace, uid } = mirror.metadata;
  try {
    await pods.delete(name, namespace, { gracePeriodSeconds, preconditions: { uid } });
  } catch (error) {
    if (!isApiError(error, 'NotFound') && !isApiError(error, 'Conflict')) throw error;
  }
}

/** The mirror that shows the Pod; it is owned by the node. */
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

/** Serves logs and streams of static Pods by the UIDs of their mirrors, which clients of the API know. */
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

/** Whether the mirror is up to date. A mirror that a client has deleted is not, unless the Pod is ending too: it is created again. */
const shows = (mirror: Pod, pod: Pod | undefined): boolean =>
  pod !== undefined &&
  mirroredUid(mirror) === pod.metadata.uid &&
  (mirror.metadata.deletionTimestamp === undefined || pod.metadata.deletionTimestamp !== undefined);
