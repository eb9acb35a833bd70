/** Validates the fields that decide where a Pod may run, such as affinity and tolerations. Source: v1.33 (rules and wording). */

import { repeats } from '../../../../../machinery/duplicates.ts';
import {
  allErrors,
  duplicate,
  type FieldError,
  forbidden,
  invalid,
  notSupported,
  required,
} from '../../../../../machinery/field-error.ts';
import { labelSelectorErrors } from '../../../../../machinery/labels.ts';
import {
  dns1123LabelErrors,
  dns1123SubdomainErrors,
  labelValueErrors,
  qualifiedNameErrors,
} from '../../../../../machinery/names.ts';
import type {
  Affinity,
  LabelSelector,
  NodeAffinity,
  NodeSelector,
  NodeSelectorRequirement,
  NodeSelectorTerm,
  PodAffinity,
  PodAffinityTerm,
  PodSchedulingGate,
  PodSpec,
  Toleration,
  TopologySpreadConstraint,
} from '../../../../generated/types.ts';
import { nameErrors } from './validate-values.ts';

export const validatePlacement = (spec: PodSpec): FieldError[] =>
  allErrors(
    validateAffinity(spec.affinity, 'spec.affinity'),
    (spec.readinessGates ?? []).flatMap(({ conditionType }, index) =>
      nameErrors(conditionType ?? '', `spec.readinessGates[${index}].conditionType`, qualifiedNameErrors),
    ),
    validateSchedulingGates(spec.schedulingGates),
    validateSpread(spec.topologySpreadConstraints, 'spec.topologySpreadConstraints'),
  );

export const validateNodeSelectorLabels = (labels: Record<string, string> | undefined, path: string): FieldError[] =>
  Object.entries(labels ?? {}).flatMap(([key, value]) =>
    allErrors(nameErrors(key, path, qualifiedNameErrors), nameErrors(value, path, labelValueErrors)),
  );

const taintEffects = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'] as const;

export const validateTolerations = (tolerations: readonly Toleration[] | undefined, path: string): FieldError[] =>
  (tolerations ?? []).flatMap((toleration, index) => validateToleration(toleration, `${path}[${index}]`));

function validateToleration(toleration: Toleration, path: string): FieldError[] {
  const { key = '', operator = '', value = '', effect = '', tolerationSeconds } = toleration;
  const errors = key === '' ? [] : nameErrors(key, `${path}.key`, qualifiedNameErrors);
  if (key === '' && operator !== 'Exists') {
    const meaning = 'which means "match all values and all keys"';
    errors.push(invalid(`${path}.operator`, operator, `operator must be Exists when \`key\` is empty, ${meaning}`));
  }
  if (tolerationSeconds !== undefined && effect !== 'NoExecute') {
    errors.push(invalid(`${path}.effect`, effect, "effect must be 'NoExecute' when `tolerationSeconds` is set"));
  }
  if (operator === 'Equal' || operator === '') {
    const texts = labelValueErrors(value);
    if (texts.length > 0) errors.push(invalid(`${path}.operator`, value, texts.join(';')));
  } else if (operator === 'Exists') {
    if (value !== '') {
      errors.push(invalid(`${path}.operator`, value, "value must be empty when `operator` is 'Exists'"));
    }
  } else {
    errors.push(notSupported(`${path}.operator`, operator, ['Equal', 'Exists']));
  }
  if (effect !== '' && !(taintEffects as readonly string[]).includes(effect)) {
    errors.push(notSupported(`${path}.effect`, effect, taintEffects));
  }
  return errors;
}

function validateAffinity(affinity: Affinity | undefined, path: string): FieldError[] {
  return allErrors(
    affinity?.nodeAffinity ? validateNodeAffinity(affinity.nodeAffinity, `${path}.nodeAffinity`) : [],
    affinity?.podAffinity ? validatePodAffinity(affinity.podAffinity, `${path}.podAffinity`) : [],
    affinity?.podAntiAffinity ? validatePodAffinity(affinity.podAntiAffinity, `${path}.podAntiAffinity`) : [],
  );
}

function validateNodeAffinity(affinity: NodeAffinity, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const needed = affinity.requiredDuringSchedulingIgnoredDuringExecution;
  if (needed) errors.push(...validateNodeSelector(needed, `${path}.requiredDuringSchedulingIgnoredDuringExecution`));
  (affinity.preferredDuringSchedulingIgnoredDuringExecution ?? []).forEach(({ weight, preference }, index) => {
    const at = `${path}.preferredDuringSchedulingIgnoredDuringExecution[${index}]`;
    errors.push(...weightErrors(weight, at));
    errors.push(...validateNodeTerm(preference ?? {}, false, `${at}.preference`));
  });
  return errors;
}

export function validateNodeSelector({ nodeSelectorTerms = [] }: NodeSelector, path: string): FieldError[] {
  const terms = `${path}.nodeSelectorTerms`;
  return nodeSelectorTerms.length === 0
    ? [required(terms, 'must have at least one node selector term')]
    : nodeSelectorTerms.flatMap((term, index) => validateNodeTerm(term, true, `${terms}[${index}]`));
}

const weightErrors = (weight: number, path: string): FieldError[] =>
  weight >= 1 && weight <= 100 ? [] : [invalid(`${path}.weight`, weight, 'must be in the range 1-100')];

const validateNodeTerm = (term: NodeSelectorTerm, checkValues: boolean, path: string): FieldError[] =>
  allErrors(
    (term.matchExpressions ?? []).flatMap((requirement, index) =>
      validateNodeRequirement(requirement, checkValues, `${path}.matchExpressions[${index}]`),
    ),
    (term.matchFields ?? []).flatMap((requirement, index) =>
      validateNodeField(requirement, `${path}.matchFields[${index}]`),
    ),
  );

/** `checkValues` is false for preferences, because upstream accepts any label value in preferences. */
function validateNodeRequirement(
  { key, operator, values = [] }: NodeSelectorRequirement,
  checkValues: boolean,
  path: string,
): FieldError[] {
  const errors: FieldError[] = [];
  if (operator === 'In' || operator === 'NotIn') {
    if (values.length === 0) {
      errors.push(required(`${path}.values`, "must be specified when `operator` is 'In' or 'NotIn'"));
    }
  } else if (operator === 'Exists' || operator === 'DoesNotExist') {
    if (values.length > 0) {
      errors.push(forbidden(`${path}.values`, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"));
    }
  } else if (operator === 'Gt' || operator === 'Lt') {
    if (values.length !== 1) {
      errors.push(required(`${path}.values`, "must be specified single value when `operator` is 'Lt' or 'Gt'"));
    }
  } else {
    errors.push(invalid(`${path}.operator`, operator ?? '', 'not a valid selector operator'));
  }
  errors.push(...nameErrors(key ?? '', `${path}.key`, qualifiedNameErrors));
  if (checkValues) {
    values.forEach((value, index) => {
      errors.push(...nameErrors(value, `${path}.values[${index}]`, labelValueErrors));
    });
  }
  return errors;
}

function validateNodeField({ key, operator, values = [] }: NodeSelectorRequirement, path: string): FieldError[] {
  const errors: FieldError[] = [];
  if (operator !== 'In' && operator !== 'NotIn') {
    errors.push(invalid(`${path}.operator`, operator ?? '', 'not a valid selector operator'));
  } else if (values.length !== 1) {
    errors.push(
      required(`${path}.values`, "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"),
    );
  }
  if (key !== 'metadata.name') {
    errors.push(invalid(`${path}.key`, key ?? '', 'not a valid field selector key'));
  } else {
    values.forEach((value, index) => {
      errors.push(...nameErrors(value, `${path}.values[${index}]`, dns1123SubdomainErrors));
    });
  }
  return errors;
}

const validatePodAffinity = (affinity: PodAffinity, path: string): FieldError[] =>
  allErrors(
    (affinity.requiredDuringSchedulingIgnoredDuringExecution ?? []).flatMap((term, index) =>
      validatePodTerm(term, `${path}.requiredDuringSchedulingIgnoredDuringExecution[${index}]`),
    ),
    (affinity.preferredDuringSchedulingIgnoredDuringExecution ?? []).flatMap((term, index) => {
      const at = `${path}.preferredDuringSchedulingIgnoredDuringExecution[${index}]`;
      return allErrors(weightErrors(term.weight, at), validatePodTerm(term.podAffinityTerm, `${at}.podAffinityTerm`));
    }),
  );

/** Upstream has no such limit. The scheduler compares the terms with the Pods of all nodes. */
const MAX_PARTS = 1000;

/** Checks the size of required inter-Pod affinity. Call this only for new Pods: an existing Pod with more must remain changeable. */
export const validateAffinitySize = ({ affinity }: PodSpec): FieldError[] =>
  (['podAffinity', 'podAntiAffinity'] as const).flatMap((kind) => {
    const terms = affinity?.[kind]?.requiredDuringSchedulingIgnoredDuringExecution ?? [];
    const size = terms.reduce((sum, term) => sum + partsOf(term), 0);
    if (size <= MAX_PARTS) return [];
    const rule = `must have at most ${MAX_PARTS} terms, namespaces, requirements and values together`;
    return [invalid(`spec.affinity.${kind}.requiredDuringSchedulingIgnoredDuringExecution`, size, rule)];
  });

/** A label key that the API server has not added to the selector counts, too: the scheduler adds it once the Pod has the label. */
function partsOf(term: PodAffinityTerm): number {
  const { labelSelector, namespaceSelector, namespaces = [], matchLabelKeys = [], mismatchLabelKeys = [] } = term;
  const known = new Set(labelSelector?.matchExpressions?.map(({ key }) => key));
  const open = [...matchLabelKeys, ...mismatchLabelKeys].filter((key) => !known.has(key));
  return 1 + namespaces.length + 2 * open.length + sizeOf(labelSelector) + sizeOf(namespaceSelector);
}

const sizeOf = ({ matchLabels = {}, matchExpressions = [] }: LabelSelector = {}): number =>
  matchExpressions.reduce((sum, { values = [] }) => sum + 1 + values.length, Object.keys(matchLabels).length);

function validatePodTerm(term: PodAffinityTerm, path: string): FieldError[] {
  const mismatchLabelKeys = new Set(term.mismatchLabelKeys);
  return allErrors(
    labelSelectorErrors(term.labelSelector, `${path}.labelSelector`),
    labelSelectorErrors(term.namespaceSelector, `${path}.namespaceSelector`),
    (term.namespaces ?? []).flatMap((name) => nameErrors(name, `${path}.namespace`, dns1123LabelErrors)),
    labelKeyErrors(term.matchLabelKeys, term.labelSelector, `${path}.matchLabelKeys`),
    labelKeyErrors(term.mismatchLabelKeys, term.labelSelector, `${path}.mismatchLabelKeys`),
    (term.matchLabelKeys ?? []).flatMap((key, index) =>
      mismatchLabelKeys.has(key)
        ? [invalid(`${path}.matchLabelKeys[${index}]`, key, 'exists in both matchLabelKeys and mismatchLabelKeys')]
        : [],
    ),
    term.topologyKey ? [] : [required(`${path}.topologyKey`, 'can not be empty')],
    nameErrors(term.topologyKey ?? '', `${path}.topologyKey`, qualifiedNameErrors),
  );
}

function labelKeyErrors(keys: readonly string[] | undefined, selector: LabelSelector | undefined, path: string) {
  if ((keys ?? []).length === 0) return [];
  if (!selector) return [forbidden(path, 'must not be specified when labelSelector is not set')];
  return (keys ?? []).flatMap((key, index) => nameErrors(key, `${path}[${index}]`, qualifiedNameErrors));
}

function validateSchedulingGates(gates: readonly PodSchedulingGate[] | undefined): FieldError[] {
  const seen = new Set<string>();
  return (gates ?? []).flatMap(({ name }, index) => {
    const path = `spec.schedulingGates[${index}]`;
    const errors = nameErrors(name ?? '', path, qualifiedNameErrors);
    if (seen.has(name)) errors.push(duplicate(path, name));
    seen.add(name);
    return errors;
  });
}

function validateSpread(constraints: readonly TopologySpreadConstraint[] | undefined, path: string): FieldError[] {
  const pairs = (constraints ?? []).map(({ topologyKey, whenUnsatisfiable }) => `${topologyKey} ${whenUnsatisfiable}`);
  // Like upstream, reports all equal constraints except the last one.
  const repeated = repeats(pairs.reverse()).reverse();
  return (constraints ?? []).flatMap((constraint, index) => {
    const at = `${path}[${index}]`;
    const { maxSkew, topologyKey, whenUnsatisfiable, minDomains } = constraint;
    const errors: FieldError[] = [];
    if (!(maxSkew > 0)) errors.push(invalid(`${at}.maxSkew`, maxSkew, 'must be greater than zero'));
    if (!topologyKey) errors.push(required(`${at}.topologyKey`, 'can not be empty'));
    if (whenUnsatisfiable !== 'DoNotSchedule' && whenUnsatisfiable !== 'ScheduleAnyway') {
      errors.push(
        notSupported(`${at}.whenUnsatisfiable`, whenUnsatisfiable ?? '', ['DoNotSchedule', 'ScheduleAnyway']),
      );
    }
    if (repeated[index]) {
      errors.push(duplicate(`${at}.{topologyKey, whenUnsatisfiable}`, `{${topologyKey}, ${whenUnsatisfiable}}`));
    }
    if (minDomains !== undefined && minDomains <= 0) {
      errors.push(invalid(`${at}.minDomains`, minDomains, 'must be greater than zero'));
    }
    if (minDomains !== undefined && whenUnsatisfiable !== 'DoNotSchedule') {
      errors.push(
        invalid(
          `${at}.minDomains`,
          minDomains,
          `can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ${whenUnsatisfiable}`,
        ),
      );
    }
    for (const field of ['nodeAffinityPolicy', 'nodeTaintsPolicy'] as const) {
      const policy = constraint[field];
      if (policy !== undefined && policy !== 'Honor' && policy !== 'Ignore') {
        errors.push(notSupported(`${at}.${field}`, policy, ['Honor', 'Ignore']));
      }
    }
    errors.push(...labelKeyErrors(constraint.matchLabelKeys, constraint.labelSelector, `${at}.matchLabelKeys`));
    return allErrors(errors, labelSelectorErrors(constraint.labelSelector, `${at}.labelSelector`));
  });
}
