/**
 * Decides, by the kubelet's rules, whether a node admits a Pod that is bound to it. A rejected Pod fails with the returned reason and
 * message. A critical Pod may preempt other Pods of the node.
 * Source: the predicates in pkg/kubelet/lifecycle, pkg/kubelet/sysctl and pkg/security/apparmor of v1.33 (behavior and wording).
 */
import { containersOf } from '../api/core/v1/pod/containers.ts';
import { hasEnded } from '../api/core/v1/pod/status/final-phase.ts';
import type { Node, Pod } from '../api/generated/types.ts';
import {
  addQuantities,
  compareQuantities,
  type Quantity,
  quantityMilli,
  quantityValue,
  zeroQuantity,
} from '../machinery/quantity.ts';
import { isCritical, shortageAfter, victimsFor } from './critical-pods.ts';
import { hostPortsTaken } from './host-ports.ts';
import { allocatableOf, requestedBy, wantedBy } from './node-resources.ts';
import { matchesNodeSelection, untoleratedTaint } from './requirements.ts';
import { sysctlRefusal } from './sysctls.ts';

export interface Refusal {
  /** status.reason of the Pod, and the reason of its Event. */
  reason: string;
  message: string;
}

export interface NodeSide {
  node: Node;
  /** The other Pods of this node. Terminated Pods are ignored. */
  others: readonly Pod[];
  /** Called for the Pod to admit and for Pods in `others`. */
  isStatic(pod: Pod): boolean;
  /** Whether a Pod in `others` is terminating and will free its resources without an eviction. Default: no Pod is. */
  isEnding?(pod: Pod): boolean;
  appArmorEnabled: boolean;
  /** Whether the runtime supports supplementalGroupsPolicy Strict. */
  strictGroups: boolean;
  /** The result of parseAllowedSysctls(). Default: only safe sysctls are allowed. */
  allowedUnsafeSysctls?: readonly string[];
}

/** The critical Pod can be admitted after other Pods have terminated. */
export interface Preemption {
  /** The Pods to evict; empty if the Pods that are already terminating free enough resources. */
  victims: readonly Pod[];
}

const OS_LABEL = 'kubernetes.io/os';

/** Returns undefined if the node admits the Pod, a Preemption if other Pods must terminate first, and otherwise a Refusal. */
export function refusal(pod: Pod, side: NodeSide): Refusal | Preemption | undefined {
  const critical = isCritical(pod, side.isStatic(pod));
  for (const check of [sysctls, operatingSystem, groupsPolicy, ...(critical ? [] : [resources]), placement, appArmor]) {
    const refused = check(pod, side);
    if (refused !== undefined) return refused;
  }
  return critical ? makeRoom(pod, side) : undefined;
}

type Check = (pod: Pod, side: NodeSide) => Refusal | undefined;

const sysctls: Check = ({ spec }, { allowedUnsafeSysctls = [] }) => {
  const host = { network: spec?.hostNetwork === true, ipc: spec?.hostIPC === true };
  for (const { name } of spec?.securityContext?.sysctls ?? []) {
    const refused = sysctlRefusal(name, allowedUnsafeSysctls, host);
    if (refused !== undefined) return { reason: 'SysctlForbidden', message: `forbidden sysctl: ${refused}` };
  }
  return undefined;
};

const operatingSystem: Check = ({ metadata, spec }) => {
  const label = metadata.labels?.[OS_LABEL];
  if (label !== undefined && label !== 'linux') {
    return {
      reason: 'PodOSSelectorNodeLabelDoesNotMatch',
      message: "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
    };
  }
  return spec?.os === undefined || spec.os.name === 'linux'
    ? undefined
    : { reason: 'PodOSNotSupported', message: "Failed to admit pod as the OS field doesn't match node OS" };
};

const groupsPolicy: Check = ({ spec }, { strictGroups }) =>
  spec?.securityContext?.supplementalGroupsPolicy === 'Strict' && !strictGroups
    ? {
        reason: 'SupplementalGroupsPolicyNotSupported',
        message: 'SupplementalGroupsPolicy=Strict is not supported in this node',
      }
    : undefined;

interface Shortfall {
  name: string;
  requested: Quantity;
  used: Quantity;
  capacity: Quantity;
}

const inPods = (count: number): Quantity => ({ nano: BigInt(count) * 1_000_000_000n, format: 'DecimalSI' });

function* shortfalls(pod: Pod, { node, others: all }: NodeSide): Generator<Shortfall> {
  const others = all.filter((other) => !hasEnded(other));
  const isKnown = (name: string): boolean =>
    allocatableOf(node, name) !== undefined || !(isExtended(name) || name === 'pods');
  const wanted = new Map(wantedBy(pod).filter(([name]) => isKnown(name)));
  if (isKnown('pods')) wanted.set('pods', inPods(1));
  for (const name of inOrder([...wanted.keys()])) {
    const requested = wanted.get(name) ?? zeroQuantity;
    const capacity = allocatableOf(node, name);
    const taken = name === 'pods' ? inPods(others.length) : requestedBy(others, name);
    if (compareQuantities(addQuantities(taken, requested), capacity ?? zeroQuantity) > 0)
      yield { name, requested, used: taken, capacity: capacity ?? zeroQuantity };
  }
}

/** In the unit of the kubelet's messages: millicores for cpu, whole units for other resources. */
const inKubeletUnit = (name: string, quantity: Quantity): string =>
  String((name === 'cpu' ? quantityMilli : quantityValue)(quantity));

const resources: Check = (pod, side) => {
  const { value } = shortfalls(pod, side).next();
  if (!value) return undefined;
  const { name, requested, used, capacity } = value;
  const amounts = [requested, used, capacity].map((quantity) => inKubeletUnit(name, quantity));
  return {
    reason: `OutOf${name}`,
    message: `Node didn't have enough resource: ${name}, requested: ${amounts[0]}, used: ${amounts[1]}, capacity: ${amounts[2]}`,
  };
};

/**
 * A critical Pod that lacks this many resources or more preempts no Pods. This limits the time to choose victims and the length of the
 * message.
 */
const MAX_MISSING = 100;

/** Returns undefined if the critical Pod lacks no resource, a Refusal if evictions cannot free enough, and otherwise a Preemption. */
function makeRoom(pod: Pod, side: NodeSide): Refusal | Preemption | undefined {
  const missing = new Map<string, bigint>();
  for (const { name, requested, used, capacity } of shortfalls(pod, side)) {
    missing.set(name, used.nano + requested.nano - capacity.nano);
    if (missing.size === MAX_MISSING) break;
  }
  if (missing.size === 0) return undefined;
  const others = side.others.filter((other) => !hasEnded(other));
  const [ending, staying] = [true, false].map((ends) =>
    others.filter((other) => (side.isEnding?.(other) ?? false) === ends),
  ) as [Pod[], Pod[]];
  const candidates = staying.filter((other) => !isCritical(other, side.isStatic(other)));
  const victims = missing.size < MAX_MISSING ? victimsFor(shortageAfter(missing, ending), candidates) : undefined;
  if (victims !== undefined) return { victims };
  const lacks = [...shortageAfter(missing, [...ending, ...candidates])].map(
    ([name, nano]) => `(res: ${name}, q: ${inKubeletUnit(name, { nano, format: 'DecimalSI' })}), `,
  );
  return {
    reason: 'UnexpectedAdmissionError',
    message: `Unexpected error while attempting to recover from admission failure: preemption: error finding a set of pods to preempt: no set of running pods found to reclaim resources: [${lacks.join('')}]`,
  };
}

/**
 * Extended resources are not defined by Kubernetes. Like the kubelet, admission ignores requests for extended resources that the node does
 * not have.
 */
const isExtended = (name: string): boolean => name.includes('/') && !name.includes('kubernetes.io/');

const FIRST = ['pods', 'cpu', 'memory', 'ephemeral-storage'];
const inOrder = (names: readonly string[]): string[] => {
  const all = names.toSorted();
  return [...FIRST.filter((name) => all.includes(name)), ...all.filter((name) => !FIRST.includes(name))];
};

const placement: Check = (pod, { node, others, isStatic }) => {
  if (!matchesNodeSelection(pod, node))
    return failed('NodeAffinity', "node(s) didn't match Pod's node affinity/selector");
  if (pod.spec?.nodeName && pod.spec.nodeName !== node.metadata.name)
    return failed('NodeName', "node(s) didn't match the requested node name");
  if (hostPortsTaken(pod, others))
    return failed('NodePorts', "node(s) didn't have free ports for the requested pod ports");
  // NoSchedule taints affect only the scheduler, not a Pod that is created with its nodeName.
  return !isStatic(pod) && untoleratedTaint(pod, node.spec?.taints ?? [], ['NoExecute']) !== undefined
    ? failed('TaintToleration', "node(s) had taints that the pod didn't tolerate")
    : undefined;
};

const failed = (predicate: string, cause: string): Refusal => ({
  reason: predicate,
  message: `Predicate ${predicate} failed: ${cause}`,
});

const appArmor: Check = (pod, { appArmorEnabled }) => {
  const shared = pod.spec?.securityContext?.appArmorProfile;
  const profiles = containersOf(pod).map(({ securityContext }) => securityContext?.appArmorProfile ?? shared);
  return !appArmorEnabled && profiles.some((profile) => profile !== undefined && profile.type !== 'Unconfined')
    ? { reason: 'AppArmor', message: 'Cannot enforce AppArmor: AppArmor is not enabled on the host' }
    : undefined;
};
