/**
 * Admits or rejects the Pods that are bound to the node, because a client may have bound a Pod without the scheduler, or the scheduler may
 * have decided on an outdated state of the node. A Pod that has started is not checked again. A critical Pod waits while the node preempts
 * other Pods for it.
 *
 * Boundary: the rules are in src/scheduling; this file supplies the state of the node.
 * Invariants:
 * - After a start of the agent, all Pods that have started are counted before the first new Pod of the API is checked. Static Pods may be
 *   checked earlier.
 * - Resources that are freed by preemption are reserved for the critical Pod that needs them.
 */

import { readFileSync } from 'node:fs';
import type { Node, Pod, PodStatus } from '../../api/generated/types.ts';
import { NODES } from '../../api/resources.ts';
import type { SharedInformers } from '../../client/shared-informers.ts';
import { uidOf } from '../../machinery/meta.ts';
import { formatTime } from '../../machinery/time.ts';
import type { Platform } from '../../platform/platform.ts';
import { type Refusal, refusal } from '../../scheduling/node-admission.ts';
import { createStatusWriter } from '../pod/status-writer.ts';
import { qosClass } from '../resources/container-resources.ts';
import { nodeLabels } from '../status/registration.ts';

export interface AdmissionOptions extends Platform {
  informers: SharedInformers;
  nodeName: string;
  /** Used while the API has no Node object with allocatable resources. */
  allocatable: Readonly<Record<string, string>>;
  /** Returns the Pods that have workers. Their requests count, unless the Pods have ended. */
  pods(): Iterable<Pod>;
  isStatic(pod: Pod): boolean;
  /** Whether the runtime supports supplementalGroupsPolicy Strict. */
  strictGroups: boolean;
  /** The result of parseAllowedSysctls(); absent: only safe sysctls are allowed. */
  allowedUnsafeSysctls?: readonly string[];
  /** Returns why the node currently refuses the Pod even if the Pod fits. */
  unwanted(pod: Pod): Refusal | undefined;
  begin(pod: Pod): void;
  refused(pod: Pod, refused: Refusal): void;
  writeStatus(pod: Pod, status: PodStatus): Promise<void>;
  isEnding(pod: Pod): boolean;
  preempt(pod: Pod): void;
  signal: AbortSignal;
}

export interface Admission {
  /** Resolves when the Node object has been read, or the API has reported that there is none. */
  synced: Promise<void>;
  /**
   * Starts or refuses the Pod immediately, unless the Pod must wait for open() or for room. Ignores a Pod that was refused before, unless
   * the Pod is being deleted.
   */
  admit(pod: Pod): void;
  /**
   * Called when the runtime already has a sandbox or container of the Pod. Starts the Pod if it is waiting for room. Returns whether the
   * Pod was waiting.
   */
  adopt(podUid: string): boolean;
  forget(pod: Pod): void;
  /** Called when a Pod that had started has ended and its resources are free. */
  cleared(pod: Pod): void;
  /** Called when a Pod that had started has reached a terminal phase and therefore no longer counts. */
  roomMade(): void;
  /** Called after all Pods that had started before this agent are known. */
  open(): void;
}

/**
 * A static Pod that restricts its nodes waits for open(), because the Node object may be the only source of the labels; other static Pods
 * start whether or not the API answers.
 */
const choosesNode = ({ spec }: Pod): boolean =>
  Object.keys(spec?.nodeSelector ?? {}).length > 0 || spec?.affinity?.nodeAffinity !== undefined;

export function createAdmission(options: AdmissionOptions): Admission {
  const ownNode = followOwnNode(options);
  const { isStatic, isEnding, strictGroups, allowedUnsafeSysctls = [] } = options;
  const rules = { isStatic, isEnding, strictGroups, allowedUnsafeSysctls, appArmorEnabled: readAppArmor() };
  /** The Pods that wait for open(), by UID; undefined: open() has been called. */
  let waiting: Map<string, Pod> | undefined = new Map();
  const refusals = createRefusals(options);
  /** Critical Pods that wait while other Pods are preempted for them, by UID. */
  const makingRoom = new Map<string, Pod>();
  /** Pods that have ended while Pods wait in `makingRoom`. Their statuses may not show the end yet. */
  const clearedUids = new Set<string>();

  const preemptFor = (pod: Pod, victims: readonly Pod[]): void => {
    makingRoom.set(uidOf(pod), pod);
    for (const victim of victims) options.preempt(victim);
  };
  const admitOrReject = (pod: Pod): void => {
    const uid = uidOf(pod);
    if (refusals.has(uid)) return;
    const others = [...options.pods(), ...makingRoom.values()].filter(
      (other) => uidOf(other) !== uid && !clearedUids.has(uidOf(other)),
    );
    const answer = options.unwanted(pod) ?? refusal(pod, { node: ownNode.read(), others, ...rules });
    makingRoom.delete(uid);
    if (answer === undefined) options.begin(pod);
    else if ('reason' in answer) refusals.add(pod, answer);
    else preemptFor(pod, answer.victims);
    if (makingRoom.size === 0) clearedUids.clear();
  };
  const roomMade = (): void => {
    for (const pod of [...makingRoom.values()]) admitOrReject(pod);
  };
  const forget = (pod: Pod): void => {
    waiting?.delete(uidOf(pod));
    refusals.forget(uidOf(pod));
    makingRoom.delete(uidOf(pod));
  };
  const begin = (pod: Pod): void => {
    forget(pod);
    options.begin(pod);
  };
  return {
    synced: ownNode.synced,
    admit(pod) {
      if (wasRefused(pod)) return;
      if (hasStartedBefore(pod)) begin(pod);
      else if (waiting !== undefined && (!isStatic(pod) || choosesNode(pod))) waiting.set(uidOf(pod), pod);
      else admitOrReject(pod);
    },
    adopt(podUid) {
      const pod = makingRoom.get(podUid);
      if (pod !== undefined) begin(pod);
      return pod !== undefined;
    },
    forget,
    cleared(pod) {
      if (makingRoom.size === 0) return;
      clearedUids.add(uidOf(pod));
      roomMade();
    },
    roomMade,
    open() {
      const first = [...(waiting?.values() ?? [])];
      waiting = undefined;
      for (const pod of first) admitOrReject(pod);
    },
  };
}

interface Refusals {
  has(podUid: string): boolean;
  /** Retries the write of the status until it succeeds or the Pod no longer exists. */
  add(pod: Pod, refused: Refusal): void;
  forget(podUid: string): void;
}

function createRefusals(options: AdmissionOptions): Refusals {
  /** UIDs are kept until forget(), because the Pods' statuses may not contain the refusal yet. */
  const refusedUids = new Set<string>();
  return {
    has: (podUid) => refusedUids.has(podUid),
    add(pod, refused) {
      refusedUids.add(uidOf(pod));
      options.refused(pod, refused);
      createStatusWriter(options, options.signal).write(pod, refusedStatus(pod, refused, options.timers.now()));
    },
    forget: (podUid) => void refusedUids.delete(podUid),
  };
}

interface OwnNode {
  synced: Promise<void>;
  /** While the API has no Node object, returns one with the labels and allocatable resources that the agent will report. */
  read(): Node;
}

function followOwnNode({ informers, nodeName, allocatable, signal }: AdmissionOptions): OwnNode {
  const nodes = informers.follow<Node>(NODES, { fieldSelector: `metadata.name=${nodeName}`, signal });
  const initial: Node = {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: nodeName, labels: nodeLabels(nodeName) },
    status: { allocatable: { ...allocatable } },
  };
  return {
    synced: nodes.synced,
    read() {
      const node = nodes.get(undefined, nodeName) ?? initial;
      // The agent creates the Node object before it writes the status, so the object may still lack allocatable resources.
      return node.status?.allocatable === undefined ? { ...node, status: { ...node.status, ...initial.status } } : node;
    },
  };
}

/** Whether an agent has written a status for the Pod, or the Pod is terminating. */
const hasStartedBefore = ({ metadata, status }: Pod): boolean =>
  status?.startTime !== undefined ||
  metadata.deletionTimestamp !== undefined ||
  (status?.phase ?? 'Pending') !== 'Pending';

/** Whether the Pod failed without any container and is not being deleted, so that the node has nothing to do for it. */
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
