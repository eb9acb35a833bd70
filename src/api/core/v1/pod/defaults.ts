/**
 * Sets the defaults of a Pod; setting them again changes nothing. Fields that depend on other objects (ServiceAccount, PriorityClass,
 * RuntimeClass) are set in admission.ts and runtime-class.ts.
 * Sources: the API defaults of v1.33, and its admission plugins Priority and DefaultTolerationSeconds, which are enabled by default; for
 * defer containers, their specification.
 */
import type {
  DeferContainer,
  EnvVar,
  HTTPGetAction,
  Lifecycle,
  Pod,
  PodSpec,
  Probe,
} from '../../../generated/types.ts';
import { systemPriorities } from './admission.ts';
import { readDeferSettings } from './compatibility/defer-settings.ts';
import { readOlderForms } from './compatibility/older-forms.ts';
import { type AnyContainer, containersOf } from './containers.ts';
import { defaultFieldRef, defaultResourceFieldRef, defaultVolume } from './default-volumes.ts';
import { pullPolicyOf } from './pull-policy.ts';

const DEFAULT_GRACE_PERIOD_SECONDS = 30;
const DEFAULT_TOLERATION_SECONDS = 300;

/** `old`: the Pod that is replaced; undefined on create. */
export function defaultPod(pod: Pod, old?: Pod): void {
  pod.spec ??= { containers: [] };
  const spec = pod.spec;
  spec.containers ??= [];
  readOlderForms(pod, old);
  if (old === undefined) readDeferSettings(pod);
  defaultPodSpec(spec);
  for (const container of [...spec.containers, ...(spec.initContainers ?? []), ...(spec.deferContainers ?? [])]) {
    requestLimits(container);
    if (spec.hostNetwork === true) {
      for (const port of container.ports ?? []) port.hostPort = port.hostPort || port.containerPort;
    }
  }
  spec.enableServiceLinks ??= true;
  defaultTolerations(spec);
  defaultPriority(spec, old?.spec);
}

export function defaultPodSpec(spec: PodSpec): void {
  if ((spec.deferContainers ?? []).length > 0) defaultDefers(spec);
  for (const container of containersOf({ spec })) defaultContainer(container);
  defaultSpec(spec);
}

/**
 * Returns the spec of a stored Pod, with this version's defaults for defer containers. A Pod that an older version of lifepod stored lacks
 * the defaults of newer fields. Without these defaults, every update of such a Pod would seem to change the spec.
 */
export function currentSpec({ spec }: Pod): PodSpec {
  if (spec === undefined) return { containers: [] };
  if ((spec.deferContainers ?? []).length === 0) return spec;
  const current = structuredClone(spec);
  defaultDefers(current);
  return current;
}

/**
 * Sets the priority of a Pod with a system class, because static Pods pass through no admission. On an update, keeps the priority and the
 * preemption policy that the client omits. Admission sets the priority of other new Pods.
 */
function defaultPriority(spec: PodSpec, old: PodSpec | undefined): void {
  const priority = old?.priority ?? systemPriorities[spec.priorityClassName ?? ''];
  if (priority !== undefined) spec.priority ??= priority;
  if (old?.preemptionPolicy !== undefined) spec.preemptionPolicy ??= old.preemptionPolicy;
}

function defaultDefers(spec: PodSpec): void {
  spec.prePullDeferImages ??= true;
  spec.preStopPolicy ||= 'Concurrent';
  spec.deferContainers?.forEach(defaultDefer);
}

function defaultDefer(entry: DeferContainer): void {
  entry.trigger ||= 'PreExit';
  entry.when ||= 'Always';
  entry.failurePolicy ||= 'Ignore';
  entry.restartPolicy ||= 'Never';
  entry.terminationMessagePolicy ||= 'FallbackToLogsOnError';
  // An empty list means all reasons, like an absent list. It is removed, so that other code needs to handle only the absent list.
  if (entry.onReasons?.length === 0) delete entry.onReasons;
}

function defaultSpec(spec: PodSpec): void {
  spec.restartPolicy ||= 'Always';
  spec.dnsPolicy ||= 'ClusterFirst';
  spec.schedulerName ||= 'default-scheduler';
  spec.terminationGracePeriodSeconds ??= DEFAULT_GRACE_PERIOD_SECONDS;
  spec.securityContext ??= {};
  defaultServiceAccountAlias(spec);
  dropFalse(spec, ['hostNetwork', 'hostPID', 'hostIPC']);
  for (const volume of spec.volumes ?? []) defaultVolume(volume);
}

/** The field serviceAccount is the old name of serviceAccountName. */
function defaultServiceAccountAlias(spec: PodSpec): void {
  const name = spec.serviceAccountName || spec.serviceAccount;
  if (name) {
    spec.serviceAccountName = name;
    spec.serviceAccount = name;
  }
}

function defaultContainer(container: AnyContainer): void {
  container.imagePullPolicy ||= pullPolicyOf(container.image ?? '');
  container.terminationMessagePath ||= '/dev/termination-log';
  container.terminationMessagePolicy ||= 'File';
  container.resources ??= {};
  for (const port of container.ports ?? []) port.protocol ||= 'TCP';
  for (const variable of container.env ?? []) defaultEnv(variable);
  for (const probe of [container.livenessProbe, container.readinessProbe, container.startupProbe]) {
    if (probe) defaultProbe(probe);
  }
  if (container.lifecycle) defaultLifecycle(container.lifecycle);
  dropFalse(container, ['stdin', 'stdinOnce', 'tty']);
  for (const mount of container.volumeMounts ?? []) dropFalse(mount, ['readOnly']);
}

function requestLimits(container: AnyContainer): void {
  const resources = container.resources;
  if (!resources?.limits || Object.keys(resources.limits).length === 0) return;
  resources.requests = { ...resources.limits, ...resources.requests };
}

function defaultEnv({ valueFrom }: EnvVar): void {
  if (valueFrom?.fieldRef) defaultFieldRef(valueFrom.fieldRef);
  if (valueFrom?.resourceFieldRef) defaultResourceFieldRef(valueFrom.resourceFieldRef);
}

function defaultProbe(probe: Probe): void {
  probe.timeoutSeconds ||= 1;
  probe.periodSeconds ||= 10;
  probe.successThreshold ||= 1;
  probe.failureThreshold ||= 3;
  if (probe.httpGet) defaultHttpGet(probe.httpGet);
  if (probe.grpc) probe.grpc.service ??= '';
}

function defaultLifecycle(lifecycle: Lifecycle): void {
  for (const handler of [lifecycle.postStart, lifecycle.preStop]) {
    if (handler?.httpGet) defaultHttpGet(handler.httpGet);
  }
}

function defaultHttpGet(action: HTTPGetAction): void {
  action.path ||= '/';
  action.scheme ||= 'HTTP';
}

/**
 * Adds a toleration of 5 minutes for a node that is not ready and one for a node that is unreachable, each only if no toleration of the Pod
 * covers that taint.
 */
function defaultTolerations(spec: PodSpec): void {
  for (const key of ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable']) {
    const tolerated = (spec.tolerations ?? []).some(
      (toleration) =>
        (!toleration.key || toleration.key === key) && (!toleration.effect || toleration.effect === 'NoExecute'),
    );
    if (tolerated) continue;
    spec.tolerations = [
      ...(spec.tolerations ?? []),
      { key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: DEFAULT_TOLERATION_SECONDS },
    ];
  }
}

/** Upstream omits false for these fields. */
function dropFalse<T extends object>(object: T, fields: readonly (keyof T)[]): void {
  for (const field of fields) if (object[field] === false) delete object[field];
}
