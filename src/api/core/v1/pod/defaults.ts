/**
 * Fills in what a client left out of a Pod. Idempotent: defaults of a defaulted Pod change nothing.
 * Sources: the API defaults of v1.33, and its admission plugins Priority and DefaultTolerationSeconds, which every
 * cluster runs; the ServiceAccount plugin's part is in admission.ts, for it needs the account.
 */
import type { EnvVar, HTTPGetAction, Lifecycle, Pod, PodSpec, Probe } from '../../../generated/types.ts';
import { priorityOfClass } from './admission.ts';
import { type AnyContainer, containersWithPath } from './containers.ts';
import { defaultFieldRef, defaultResourceFieldRef, defaultVolume } from './default-volumes.ts';
import { readOlderForms } from './older-forms.ts';

const DEFAULT_GRACE_PERIOD_SECONDS = 30;
const DEFAULT_TOLERATION_SECONDS = 300;

export function defaultPod(pod: Pod): void {
  pod.spec ??= { containers: [] };
  const spec = pod.spec;
  spec.containers ??= [];
  readOlderForms(pod);
  for (const { container } of containersWithPath(spec)) defaultContainer(container);
  for (const container of [...spec.containers, ...(spec.initContainers ?? [])]) {
    requestLimits(container);
    if (spec.hostNetwork === true) {
      for (const port of container.ports ?? []) port.hostPort = port.hostPort || port.containerPort;
    }
  }
  defaultSpec(spec);
}

function defaultSpec(spec: PodSpec): void {
  spec.restartPolicy ||= 'Always';
  spec.dnsPolicy ||= 'ClusterFirst';
  spec.schedulerName ||= 'default-scheduler';
  spec.terminationGracePeriodSeconds ??= DEFAULT_GRACE_PERIOD_SECONDS;
  spec.securityContext ??= {};
  spec.enableServiceLinks ??= true;
  defaultServiceAccountAlias(spec);
  dropFalse(spec, ['hostNetwork', 'hostPID', 'hostIPC']);
  for (const volume of spec.volumes ?? []) defaultVolume(volume);
  spec.priority ??= priorityOfClass(spec.priorityClassName);
  spec.preemptionPolicy ??= 'PreemptLowerPriority';
  defaultTolerations(spec);
}

/** serviceAccount is the old name of serviceAccountName; both are served, equal. */
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

/** Always for the tag latest, named or meant; IfNotPresent for any other tag and for a digest. */
function pullPolicyOf(image: string): 'Always' | 'IfNotPresent' {
  if (image === '' || image.includes('@')) return 'IfNotPresent';
  const lastPart = image.slice(image.lastIndexOf('/') + 1);
  const colon = lastPart.indexOf(':');
  return colon === -1 || lastPart.slice(colon + 1) === 'latest' ? 'Always' : 'IfNotPresent';
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

/** Evicts from a node that is not ready or not reachable after 5 minutes, unless the Pod says otherwise. */
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

/** Fields whose false is never served: written or not, they are the same. */
function dropFalse<T extends object>(object: T, fields: readonly (keyof T)[]): void {
  for (const field of fields) if (object[field] === false) delete object[field];
}
