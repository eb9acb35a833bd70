/**
 * Validates updates of a Pod. In the spec, an update may only change images (of defer containers only until the Pod terminates), set or
 * lower activeDeadlineSeconds, add tolerations or change their tolerationSeconds, replace a negative grace period by 1, remove scheduling
 * gates and, while the Pod has gates, narrow the node selection.
 * Source: ValidatePodUpdate and ValidatePodEphemeralContainersUpdate of v1.33.
 */
import { allErrors, type FieldError, forbidden, invalid } from '../../../../../machinery/field-error.ts';
import { inclusiveRangeText } from '../../../../../machinery/names.ts';
import { validateObjectMetaUpdate } from '../../../../../machinery/object-meta.ts';
import type { Container, NodeSelectorRequirement, Pod, PodSpec, Toleration } from '../../../../generated/types.ts';
import { differences, sameValue } from '../compare.ts';
import { validateAppArmorUpdate } from '../compatibility/app-armor.ts';
import { validateDeferSettingsUpdate } from '../compatibility/defer-settings.ts';
import { validateOlderFormsUpdate } from '../compatibility/older-forms.ts';
import { specOf } from '../containers.ts';
import { currentSpec } from '../defaults.ts';
import { validateDeletionCost } from '../deletion-cost.ts';
import { isMirrorPod, validateMirrorUpdate } from '../mirror.ts';
import { MAX_INT32 } from './validate-values.ts';
import { validatePod } from './validation.ts';

/** The list of fields in upstream's message. Images of defer containers are included only if the Pod has defer containers. */
const updatableFields = ({ deferContainers = [] }: PodSpec): string =>
  [
    '`spec.containers[*].image`',
    '`spec.initContainers[*].image`',
    ...(deferContainers.length === 0 ? [] : ['`spec.deferContainers[*].image`']),
    '`spec.activeDeadlineSeconds`',
    '`spec.tolerations` (only additions to existing tolerations)',
    '`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)',
  ].join(',');

export function validatePodUpdate(pod: Pod, old: Pod): FieldError[] {
  const spec = specOf(pod);
  const oldSpec = currentSpec(old);
  const errors = allErrors(
    validateObjectMetaUpdate(pod.metadata, old.metadata),
    validateFixedAnnotations(pod, old),
    validatePod(pod),
  );
  for (const field of ['containers', 'initContainers', 'deferContainers'] as const) {
    if ((spec[field] ?? []).length !== (oldSpec[field] ?? []).length) {
      return [...errors, forbidden(`spec.${field}`, 'pod updates may not add or remove containers')];
    }
  }
  if (isTerminating(old)) errors.push(...validateDefersKept(spec, oldSpec));
  errors.push(...validateDeadline(spec, oldSpec));
  errors.push(...validateTolerationAdditions(spec.tolerations ?? [], oldSpec.tolerations ?? []));
  errors.push(...validateGateRemovals(spec, oldSpec));
  if (sameValue(spec, oldSpec)) return errors;

  const allowed = withUpdatesUndone(spec, oldSpec);
  if ((oldSpec.schedulingGates ?? []).length > 0) errors.push(...undoGatedUpdates(allowed, oldSpec));
  const changes = differences(oldSpec, allowed, 'spec');
  if (changes.length > 0) {
    errors.push(
      forbidden(
        'spec',
        `pod updates may not change fields other than ${updatableFields(oldSpec)}\n${changes.join('\n')}\n`,
      ),
    );
  }
  return errors;
}

export const validateFixedAnnotations = (pod: Pod, old: Pod): FieldError[] =>
  allErrors(
    validateMirrorUpdate(pod, old),
    validateAppArmorUpdate(pod, old),
    validateOlderFormsUpdate(pod, old),
    validateDeferSettingsUpdate(pod, old),
    validateDeletionCost(pod, old),
  );

/**
 * Returns a copy of the new spec without the changes that an update of any Pod may make. Any other difference from `old` is an error,
 * except for a Pod with scheduling gates (see undoGatedUpdates()).
 */
function withUpdatesUndone(spec: PodSpec, old: PodSpec): PodSpec {
  const withImagesOf = <T extends Container>(containers: T[] | undefined, oldContainers: T[] | undefined) =>
    containers?.map((container, index) => ({ ...container, image: oldContainers?.[index]?.image }));
  const undone: PodSpec = {
    ...spec,
    containers: withImagesOf(spec.containers, old.containers) ?? [],
    initContainers: withImagesOf(spec.initContainers, old.initContainers),
    deferContainers: withImagesOf(spec.deferContainers, old.deferContainers),
    activeDeadlineSeconds: old.activeDeadlineSeconds,
    schedulingGates: old.schedulingGates,
    tolerations: old.tolerations,
  };
  if ((old.terminationGracePeriodSeconds ?? 0) < 0 && spec.terminationGracePeriodSeconds === 1) {
    undone.terminationGracePeriodSeconds = old.terminationGracePeriodSeconds;
  }
  return undone;
}

const isTerminating = ({ metadata, status }: Pod): boolean =>
  metadata.deletionTimestamp !== undefined || status?.termination !== undefined;

function validateDefersKept(spec: PodSpec, old: PodSpec): FieldError[] {
  return (spec.deferContainers ?? []).flatMap(({ image }, index) =>
    image === old.deferContainers?.[index]?.image
      ? []
      : [forbidden(`spec.deferContainers[${index}].image`, 'may not be changed once the pod is terminating')],
  );
}

function validateDeadline(spec: PodSpec, old: PodSpec): FieldError[] {
  const path = 'spec.activeDeadlineSeconds';
  const deadline = spec.activeDeadlineSeconds;
  const oldDeadline = old.activeDeadlineSeconds;
  if (deadline === undefined) {
    return oldDeadline === undefined
      ? []
      : [invalid(path, null, 'must not update from a positive integer to nil value')];
  }
  if (deadline < 0 || deadline > MAX_INT32) return [invalid(path, deadline, inclusiveRangeText(0, MAX_INT32))];
  return oldDeadline !== undefined && oldDeadline < deadline
    ? [invalid(path, deadline, 'must be less than or equal to previous value')]
    : [];
}

function validateTolerationAdditions(tolerations: readonly Toleration[], old: readonly Toleration[]): FieldError[] {
  const textOf = ({ key = '', operator = '', value = '', effect = '' }: Toleration): string =>
    JSON.stringify([key, operator, value, effect]);
  const given = new Set(tolerations.map(textOf));
  const kept = old.every((before) => given.has(textOf(before)));
  return kept
    ? []
    : [forbidden('spec.tolerations', 'existing toleration can not be modified except its tolerationSeconds')];
}

function validateGateRemovals(spec: PodSpec, old: PodSpec): FieldError[] {
  const before = new Set((old.schedulingGates ?? []).map((gate) => gate.name));
  return (spec.schedulingGates ?? []).flatMap(({ name }, index) =>
    before.has(name)
      ? []
      : [
          forbidden(
            `spec.schedulingGates[${index}].name`,
            `only deletion is allowed, but found new scheduling gate '${name}'`,
          ),
        ],
  );
}

/**
 * Checks that the update of a Pod with scheduling gates only narrows the required node selection; the preferred node affinity may change.
 * Then restores the old node selection in `spec`, so that the update is not reported as a change of an immutable field.
 */
function undoGatedUpdates(spec: PodSpec, old: PodSpec): FieldError[] {
  const errors: FieldError[] = [];
  const oldSelector = old.nodeSelector ?? {};
  const kept = Object.entries(oldSelector).every(([key, value]) => spec.nodeSelector?.[key] === value);
  if (!kept) {
    errors.push(
      invalid(
        'spec.nodeSelector',
        spec.nodeSelector ?? {},
        'only additions to spec.nodeSelector are allowed (no mutations or deletions)',
      ),
    );
  }
  spec.nodeSelector = old.nodeSelector;

  const terms = requiredTerms(spec);
  const oldTerms = requiredTerms(old);
  const path = 'spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms';
  if (oldTerms.length > 0) {
    if (terms.length !== oldTerms.length) {
      errors.push(invalid(path, terms, 'no additions/deletions to non-empty NodeSelectorTerms list are allowed'));
    } else {
      terms.forEach((term, index) => {
        const before = oldTerms[index] ?? {};
        const extended =
          startsWith(term.matchExpressions, before.matchExpressions) &&
          startsWith(term.matchFields, before.matchFields);
        const wasEmpty = (before.matchExpressions ?? []).length + (before.matchFields ?? []).length === 0;
        if (!extended || (wasEmpty && !sameValue(term, before))) {
          errors.push(invalid(`${path}[${index}]`, term, 'only additions are allowed (no mutations or deletions)'));
        }
      });
    }
  }
  const { nodeAffinity: _dropped, ...affinity } = spec.affinity ?? {};
  const oldAffinity = old.affinity?.nodeAffinity;
  spec.affinity = oldAffinity === undefined ? affinity : { ...affinity, nodeAffinity: oldAffinity };
  return errors;
}

const requiredTerms = (spec: PodSpec) =>
  spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [];

const startsWith = (list: NodeSelectorRequirement[] | undefined, head: NodeSelectorRequirement[] | undefined) =>
  sameValue((list ?? []).slice(0, (head ?? []).length), head ?? []);

export function validateEphemeralContainersUpdate(pod: Pod, old: Pod): FieldError[] {
  if (isMirrorPod(old)) return [forbidden('', 'static pods do not support ephemeral containers')];
  const path = 'spec.ephemeralContainers';
  const errors = validatePod(pod);
  const byName = new Map(pod.spec?.ephemeralContainers?.map((container) => [container.name, container]));
  for (const before of old.spec?.ephemeralContainers ?? []) {
    const now = byName.get(before.name);
    const named = `existing ephemeral containers ${JSON.stringify(before.name)}`;
    if (now === undefined) errors.push(forbidden(path, `${named} may not be removed\n`));
    else if (!sameValue(now, before)) {
      errors.push(
        forbidden(path, `${named} may not be changed\n${differences(before, now, before.name).join('\n')}\n`),
      );
    }
  }
  return errors;
}
