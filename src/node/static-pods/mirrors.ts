/**
 * Mirror Pods: the API's view of the node's static Pods. Reconciled by name: what the API has is made equal to what runs.
 *
 * Boundary: nothing of a static Pod waits for what happens here; an API that does not answer is asked again later.
 * Source: pkg/kubelet/pod/mirror_client.go and tryReconcileMirrorPods of v1.33.
 */

import { isMirrorPod, MIRROR_ANNOTATION, mirroredUid } from '../../api/core/v1/pod/mirror.ts';
import type { Node, Pod, PodStatus } from '../../api/generated/types.ts';
import { NODES, PODS } from '../../api/resources.ts';
import type { Client } from '../../client/client.ts';
import { createWorkQueue } from '../../client/work-queue.ts';
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
  /** The static Pod of that name began, changed or went. */
  changed(fullName: string): void;
  /** A mirror of this node appeared, changed or went in the API. */
  seen(mirror: Pod, removed: boolean): void;
  /** The UID of the static Pod whose mirror has this UID. */
  mirrored(uid: string): string | undefined;
  /** Resolves when the API shows what runs, as far as it answers. */
  settled(): Promise<void>;
}

export const fullNameOf = ({ metadata }: Pod): string => `${metadata.namespace}/${metadata.name}`;

export function createMirrors(options: MirrorsOptions): Mirrors {
  const { client, nodeName, timers, log, signal, podOf } = options;
  const pods = client.resource<Pod>(PODS);
  const nodes = client.resource<Node>(NODES);
  const mirrors = new Map<string, Pod>();
  /** The status that each mirror was given, by its UID. */
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

  /** With a grace period, the mirror says that its Pod is ending. */
  async function remove(mirror: Pod, gracePeriodSeconds: number): Promise<void> {
    const { name, namespace, uid } = mirror.metadata;
    try {
      await pods.delete(name, namespace, { gracePeriodSeconds, preconditions: { uid } });
    } catch (error) {
      if (!isApiError(error, 'NotFound') && !isApiError(error, 'Conflict')) throw error;
    }
    if (gracePeriodSeconds === 0) forget(mirror);
  }

  async function create(pod: Pod): Promise<Pod> {
    const { name, namespace, labels, annotations, uid = '' } = pod.metadata;
    const node = await nodes.get(nodeName);
    const owner = { apiVersion: 'v1', kind: 'Node', name: nodeName, uid: node.metadata.uid ?? '', controller: true };
    const wanted: Pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        name,
        namespace,
        ...(labels === undefined ? {} : { labels }),
        annotations: { ...annotations, [MIRROR_ANNOTATION]: uid },
        ownerReferences: [owner],
      },
      spec: pod.spec,
    };
    const mirror = await pods.create(wanted).catch(async (error: unknown) => {
      if (!isApiError(error, 'AlreadyExists')) throw error;
      const other = await pods.get(name, namespace);
      // The node made it, and had not heard of it yet.
      if (shows(other, pod)) return other;
      if (isMirrorPod(other)) await remove(other, 0);
      throw error;
    });
    mirrors.set(fullNameOf(pod), mirror);
    return mirror;
  }

  async function write(mirror: Pod, status: PodStatus | undefined): Promise<void> {
    const uid = mirror.metadata.uid ?? '';
    const text = JSON.stringify(status);
    if (status === undefined || statuses.get(uid) === text) return;
    await options.writeStatus(mirror, status);
    statuses.set(uid, text);
  }

  function forget(mirror: Pod): void {
    const { uid } = mirror.metadata;
    if (mirrors.get(fullNameOf(mirror))?.metadata.uid === uid) mirrors.delete(fullNameOf(mirror));
    statuses.delete(uid ?? '');
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

/** The node's streams, found by the UID that a Pod has in the API. */
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

/** A mirror that someone has deleted goes, and comes again, unless its Pod is ending too. */
const shows = (mirror: Pod, pod: Pod | undefined): boolean =>
  pod !== undefined &&
  mirroredUid(mirror) === pod.metadata.uid &&
  (mirror.metadata.deletionTimestamp === undefined || pod.metadata.deletionTimestamp !== undefined);
