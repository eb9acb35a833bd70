/** The subresources of a Pod. Source: pkg/registry/core/pod of v1.33. */

import { allErrors, type FieldError, notSupported, required } from '../../../../machinery/field-error.ts';
import type { KubeObject } from '../../../../machinery/meta.ts';
import { uidOf } from '../../../../machinery/meta.ts';
import { validateObjectMetaUpdate } from '../../../../machinery/object-meta.ts';
import { badRequest, conflict, invalidObject } from '../../../../machinery/status.ts';
import { formatTime } from '../../../../machinery/time.ts';
import type { Binding, Pod, PodCondition } from '../../../generated/types.ts';
import type { SubresourceDefinition, WriteContext } from '../../../kind.ts';
import { readAppArmorAnnotations } from './compatibility/app-armor.ts';
import { mirrorOlderStatuses } from './compatibility/older-forms.ts';
import { specOf } from './containers.ts';
import { defaultPod } from './defaults.ts';
import { deferSubresource } from './defer-control.ts';
import { keepTermination, preparePodForUpdate, withCondition } from './strategy.ts';
import { validatePodStatusUpdate } from './validation/validate-status.ts';
import { validateEphemeralContainersUpdate, validateFixedAnnotations } from './validation/validate-update.ts';

/**
 * Replaces the status, except the qosClass if the body lacks it, and the fields that keepTermination() keeps. Also replaces the labels,
 * annotations or finalizers if the body contains them. Keeps all other fields of the Pod.
 */
function applyStatus(old: Pod, body: KubeObject): Pod {
  const sent = structuredClone({ metadata: body.metadata, status: (body as Pod).status });
  const status = { ...sent.status };
  if (status.qosClass === undefined && old.status?.qosClass !== undefined) status.qosClass = old.status.qosClass;
  keepTermination(status, old);
  const { labels, annotations, finalizers } = sent.metadata;
  const pod: Pod = { ...old, metadata: structuredClone(old.metadata), status };
  if (labels !== undefined) pod.metadata.labels = labels;
  if (annotations !== undefined) pod.metadata.annotations = annotations;
  if (finalizers !== undefined) pod.metadata.finalizers = finalizers;
  mirrorOlderStatuses(pod);
  return pod;
}

function validateBinding(binding: Binding): FieldError[] {
  const { kind, name } = binding.target ?? {};
  return allErrors(
    kind && kind !== 'Node' ? [notSupported('target.kind', kind, ['Node', '<empty>'])] : [],
    name ? [] : [required('target.name')],
  );
}

/**
 * Binds the Pod to a node, and adds the labels and annotations of the Binding to the Pod. Throws 409 if the Pod is already bound, being
 * deleted or gated, or has another UID; 400 if the Binding names another Pod; 422 if the Binding is invalid.
 */
function applyBinding(old: Pod, body: KubeObject, context: WriteContext): Pod {
  const binding = body as Binding;
  const name = old.metadata.name;
  if (binding.metadata?.name && binding.metadata.name !== name) {
    throw badRequest('name in URL does not match name in Binding object');
  }
  const errors = validateBinding(binding);
  if (errors.length > 0) throw invalidObject({ group: '', kind: 'Binding' }, name, errors);
  const refuse = (cause: string) => conflict({ group: '', resource: 'pods/binding' }, name, cause);
  const { uid } = binding.metadata ?? {};
  if (uid && uid !== old.metadata.uid) {
    throw refuse(`Precondition failed: UID in precondition: ${uid}, UID in object meta: ${uidOf(old)}`);
  }
  if (old.metadata.deletionTimestamp !== undefined) {
    throw refuse(`pod ${name} is being deleted, cannot be assigned to a host`);
  }
  if (old.spec?.nodeName) {
    throw refuse(`pod ${name} is already assigned to node ${JSON.stringify(old.spec.nodeName)}`);
  }
  if ((old.spec?.schedulingGates ?? []).length > 0) throw refuse(`pod ${name} has non-empty .spec.schedulingGates`);

  const pod = structuredClone(old);
  pod.spec = { ...specOf(pod), nodeName: binding.target.name };
  const now = formatTime(context.now);
  const conditions = withCondition(pod.status?.conditions, { type: 'PodScheduled', status: 'True' }, now);
  pod.status = { ...pod.status, conditions };
  for (const field of ['labels', 'annotations'] as const) {
    const added = binding.metadata?.[field];
    if (added !== undefined) pod.metadata[field] = { ...pod.metadata[field], ...added };
  }
  mirrorOlderStatuses(pod);
  return pod;
}

/** Source: Disruptions, "Pod disruption conditions" (v1.33). */
function markEvicted(old: Pod, _eviction: KubeObject, context: WriteContext): Pod {
  const condition: PodCondition = {
    type: 'DisruptionTarget',
    status: 'True',
    reason: 'EvictionByEvictionAPI',
    message: 'Eviction API: evicting',
  };
  const conditions = withCondition(old.status?.conditions, condition, formatTime(context.now));
  return { ...old, status: { ...old.status, conditions } };
}

function applyEphemeralContainers(old: Pod, body: KubeObject): Pod {
  const sent = structuredClone(body) as Pod;
  const pod = structuredClone(old);
  pod.spec = { ...specOf(pod) };
  if (sent.spec?.ephemeralContainers === undefined) delete pod.spec.ephemeralContainers;
  else pod.spec.ephemeralContainers = sent.spec.ephemeralContainers;
  defaultPod(pod, old);
  readAppArmorAnnotations(pod);
  preparePodForUpdate(pod, old);
  return pod;
}

export const podSubresources: Readonly<Record<string, SubresourceDefinition<Pod>>> = {
  status: {
    verbs: ['get', 'update', 'patch'],
    apply: applyStatus,
    validate: validatePodStatusUpdate,
  },
  binding: {
    bodyKind: { group: '', version: 'v1', kind: 'Binding', schema: 'io.k8s.api.core.v1.Binding' },
    verbs: ['create'],
    apply: applyBinding,
    validate: (pod, old) =>
      allErrors(validateObjectMetaUpdate(pod.metadata, old.metadata), validateFixedAnnotations(pod, old)),
  },
  // apply() only sets the condition; the API server then deletes the Pod.
  eviction: {
    operation: 'evict',
    bodyKind: {
      group: 'policy',
      version: 'v1',
      kind: 'Eviction',
      schema: 'io.k8s.api.policy.v1.Eviction',
      // kubectl sent this version before 1.22.
      olderVersions: ['v1beta1'],
    },
    verbs: ['create'],
    ends: true,
    apply: markEvicted,
  },
  defer: deferSubresource,
  ephemeralcontainers: {
    verbs: ['get', 'update', 'patch'],
    apply: applyEphemeralContainers,
    validate: validateEphemeralContainersUpdate,
  },
  log: { verbs: ['get'], operation: 'log' },
  exec: { verbs: ['get', 'create'], connects: 'PodExecOptions' },
  attach: { verbs: ['get', 'create'], connects: 'PodAttachOptions' },
  portforward: { verbs: ['get', 'create'], connects: 'PodPortForwardOptions' },
  proxy: {
    verbs: ['get', 'create', 'update', 'patch', 'delete'],
    operation: 'proxyToPod',
    connects: 'PodProxyOptions',
    subpaths: true,
  },
};
