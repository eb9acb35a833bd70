/**
 * The node's own door: who bound a Pod to it asked no scheduler, and the scheduler knew the node as it was. A Pod that has
 * not begun is taken or fails; one that has begun is never asked again. A critical one waits while others make way for it.
 *
 * Boundary: the rules are scheduling's; here is what the node knows of itself.
 * Invariants:
 *  1. After a start the Pods that have begun are counted before the first new one is looked at.
 *  2. What others make way for is given to nobody else.
 *  3. A refusal is written until the API has it, or the Pod is gone.
 */

import { readFileSync } from 'node:fs';
import type { Node, Pod, PodStatus } from '../../api/generated/types.ts';
import { NODES } from '../../api/resources.ts';
import type { Client } from '../../client/client.ts';
import { createInformer } from '../../client/informer.ts';
import { formatTime } from '../../machinery/time.ts';
import type { Platform } from '../../platform/platform.ts';
import { type Refusal, refusal } from '../../scheduling/node-admission.ts';
import { createStatusWriter } from '../pod/status-writer.ts';
import { qosClass } from '../resources/container-resources.ts';
import { nodeLabels } from '../status/node-status.ts';

export interface AdmissionOptions extends Platform {
  client: Client;
  nodeName: string;
  /** Of the node, while the API has no Node object that says so. */
  allocatable: Readonly<Record<string, string>>;
  /** The Pods that have been taken. */
  pods(): Iterable<Pod>;
  isStatic(pod: Pod): boolean;
  /** The runtime gives a process no other groups than it is told to, where that is wanted. */
  strictGroups: boolean;
  /** Absent: none but the safe ones. */
  allowedUnsafeSysctls?: readonly string[];
  /** Why the node takes no such Pod as things are. */
  unwanted(pod: Pod): Refusal | undefined;
  begin(pod: Pod): void;
  /** The Pod is refused: its Event. */
  refused(pod: Pod, refused: Refusal): void;
  writeStatus(pod: Pod, status: PodStatus): Promise<void>;
  /** The Pod ends already. */
  isEnding(pod: Pod): boolean;
  /** The Pod is to end for a critical one. */
  preempt(pod: Pod): void;
  signal: AbortSignal;
}

export interface Admission {
  /** Resolves when the Node object is known, where there is one. */
  synced: Promise<void>;
  /** The Pod begins or is refused, at once or when open() is called. */
  admit(pod: Pod): void;
  /** The runtime has something of the Pod: where others make way for it, it has begun all the same. Returns whether it is such a Pod. */
  adopt(podUid: string): boolean;
  /** The Pod is gone before it has begun. */
  forget(pod: Pod): void;
  /** A Pod that had begun is over, and what it had is free. */
  cleared(pod: Pod): void;
  /** A Pod that had begun has ended, and counts no more: those that wait are looked at again. */
  roomMade(): void;
  /** Every Pod that had begun before is known. */
  open(): void;
}

/** The labels that it asks for may stand in the Node object alone; other static Pods begin whether or not the API answers. */
const choosesNode = ({ spec }: Pod): boolean =>
  Object.keys(spec?.nodeSelector ?? {}).length > 0 || spec?.affinity?.nodeAffinity !== undefined;

export function createAdmission(options: AdmissionOptions): Admission {
  const { client, nodeName, log, timers, signal } = options;
  const nodes = createInformer<Node>(
    client.resource(NODES),
    { fieldSelector: `metadata.name=${nodeName}`, log, timers, signal },
    {},
  );
  const initial: Node = {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: nodeName, labels: nodeLabels(nodeName) },
    status: { allocatable: { ...options.allocatable } },
  };
  /** The object is made by the node before its status says what it has. */
  const node = (): Node => {
    const known = nodes.get(undefined, nodeName) ?? initial;
    return known.status?.allocatable === undefined
      ? { ...known, status: { ...known.status, ...initial.status } }
      : known;
  };
  const { allowedUnsafeSysctls = [], strictGroups } = options;
  const fixed = { appArmorEnabled: readAppArmor(), allowedUnsafeSysctls, strictGroups };
  let waiting: Map<string, Pod> | undefined = new Map();

  /** Until the refusal stands in their statuses, and while they are there. */
  const refusedUids = new Set<string>();
  /** Critical Pods for which others make way. */
  const makingRoom = new Map<string, Pod>();
  /** Over, whatever their statuses say still. */
  const clearedUids = new Set<string>();

  const refuse = (pod: Pod, refused: Refusal): void => {
    refusedUids.add(pod.metadata.uid ?? '');
    options.refused(pod, refused);
    createStatusWriter(options, signal).write(pod, refusedStatus(pod, refused, timers.now()));
  };
  const decide = (pod: Pod): void => {
    const { uid = '' } = pod.metadata;
    if (refusedUids.has(uid)) return;
    const others = [...options.pods(), ...makingRoom.values()].filter(
      ({ metadata }) => metadata.uid !== uid && !clearedUids.has(metadata.uid ?? ''),
    );
    const { isStatic, isEnding } = options;
    const answer = options.unwanted(pod) ?? refusal(pod, { node: node(), others, isStatic, isEnding, ...fixed });
    makingRoom.delete(uid);
    if (answer === undefined) options.begin(pod);
    else if ('reason' in answer) refuse(pod, answer);
    else {
      makingRoom.set(uid, pod);
      for (const victim of answer.victims) options.preempt(victim);
    }
    if (makingRoom.size === 0) clearedUids.clear();
  };
  const roomMade = (): void => {
    for (const pod of [...makingRoom.values()]) decide(pod);
  };
  const begin = (pod: Pod): void => {
    forget(pod);
    options.begin(pod);
  };
  const forget = ({ metadata: { uid = '' } }: Pod): void => {
    waiting?.delete(uid);
    refusedUids.delete(uid);
    makingRoom.delete(uid);
  };
  return {
    synced: nodes.synced,
    admit(pod) {
      if (wasRefused(pod)) return;
      if (hasBegun(pod)) begin(pod);
      else if (waiting !== undefined && (!options.isStatic(pod) || choosesNode(pod)))
        waiting.set(pod.metadata.uid ?? '', pod);
      else decide(pod);
    },
    adopt(podUid) {
      const pod = makingRoom.get(podUid);
      if (pod !== undefined) begin(pod);
      return pod !== undefined;
    },
    forget,
    cleared({ metadata: { uid = '' } }) {
      if (makingRoom.size === 0) return;
      clearedUids.add(uid);
      roomMade();
    },
    roomMade,
    open() {
      const first = [...(waiting?.values() ?? [])];
      waiting = undefined;
      for (const pod of first) decide(pod);
    },
  };
}

/** An agent has spoken of it, or it ends without having begun. */
const hasBegun = ({ metadata, status }: Pod): boolean =>
  status?.startTime !== undefined ||
  metadata.deletionTimestamp !== undefined ||
  (status?.phase ?? 'Pending') !== 'Pending';

/** It has ended without any container: there is nothing to do for it until it is deleted. */
const wasRefused = ({ metadata, status }: Pod): boolean =>
  status?.phase === 'Failed' && status.containerStatuses === undefined && metadata.deletionTimestamp === undefined;

/** Source: rejectPod of pkg/kubelet, v1.33. */
const refusedStatus = (pod: Pod, { reason, message }: Refusal, now: number): PodStatus => ({
  ...pod.status,
  phase: 'Failed',
  reason,
  message: `Pod was rejected: ${message}`,
  qosClass: qosClass(pod),
  startTime: formatTime(now),
});

function readAppArmor(): boolean {
  try {
    return readFileSync('/sys/module/apparmor/parameters/enabled', 'utf8').startsWith('Y');
  } catch {
    return false;
  }
}
