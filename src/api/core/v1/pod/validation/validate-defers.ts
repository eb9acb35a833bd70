/**
 * Validates defer containers, and the fields that configure them. Source: the specification of defer containers, "Validation"; the messages
 * are worded like the messages of v1.33.
 */

import { repeats } from '../../../../../machinery/duplicates.ts';
import {
  allErrors,
  duplicate,
  type FieldError,
  forbidden,
  invalid,
  notFoundField,
  notSupported,
  required,
} from '../../../../../machinery/field-error.ts';
import type { DeferContainer, PodSpec } from '../../../../generated/types.ts';
import { isSidecar, runsBeforeExit } from '../containers.ts';
import { terminationReasons } from '../status/termination-reasons.ts';
import { type ContainerContext, hostPortsOf, takeHostPorts, validateFields } from './validate-container-fields.ts';
import { validateProbesAndHooks } from './validate-probes.ts';
import { deferEnvFieldPaths } from './validate-references.ts';
import { choiceErrors, nonNegative, positive } from './validate-values.ts';

const triggers = ['PreExit', 'PostExit'] as const;
const restartPolicies = ['Always', 'OnFailure', 'Never'] as const;
const outcomes = ['Always', 'Succeeded', 'Failed'] as const;
const failurePolicies = ['Ignore', 'FailPod'] as const;
const preStopPolicies = ['Concurrent', 'AfterPreExit'] as const;

export function validateDeferContainers(context: ContainerContext): FieldError[] {
  const { spec } = context;
  if (spec.deferContainers === undefined) return [];
  const path = 'spec.deferContainers';
  const others = new Set([...spec.containers, ...(spec.initContainers ?? [])].map((container) => container.name));
  const names = new Set(others);
  // The entries run one at a time: PreExit entries while app containers and sidecars run, PostExit entries while only sidecars run.
  const sidecars = (spec.initContainers ?? []).filter(isSidecar);
  const portsAfterExit = hostPortsOf(sidecars);
  const portsBeforeExit = hostPortsOf([...sidecars, ...spec.containers]);
  let afterExit = false;
  return spec.deferContainers.flatMap((entry, index) => {
    const at = `${path}[${index}]`;
    const images = validateImage(entry, others, at);
    const errors = validateFields(entry, context, at, { fieldPaths: deferEnvFieldPaths, images });
    errors.push(...choiceErrors(entry.trigger, `${at}.trigger`, triggers));
    errors.push(...choiceErrors(entry.restartPolicy, `${at}.restartPolicy`, restartPolicies));
    if (names.has(entry.name)) errors.push(duplicate(`${at}.name`, entry.name));
    else if (entry.name) names.add(entry.name);
    if (entry.trigger === 'PreExit' && afterExit) {
      errors.push(invalid(`${at}.trigger`, entry.trigger, 'must not come after an entry with trigger PostExit'));
    }
    afterExit ||= entry.trigger === 'PostExit';
    errors.push(...validateConditions(entry, at));
    errors.push(...positive(entry.timeoutSeconds, `${at}.timeoutSeconds`));
    errors.push(...takeHostPorts(entry, new Set(), at, runsBeforeExit(entry) ? portsBeforeExit : portsAfterExit));
    const { lifecycle, readinessProbe, startupProbe, ...allowed } = entry;
    errors.push(...validateProbesAndHooks(allowed, spec.terminationGracePeriodSeconds, at));
    for (const [field, value] of Object.entries({ lifecycle, readinessProbe, startupProbe })) {
      if (value) errors.push(forbidden(`${at}.${field}`, 'may not be set for defer containers'));
    }
    return errors;
  });
}

/** `others`: the names of the containers that imageFrom may name. */
function validateImage({ image, imageFrom }: DeferContainer, others: ReadonlySet<string>, path: string): FieldError[] {
  if (!imageFrom) return image ? [] : [required(`${path}.image`, 'must specify one of: `image` or `imageFrom`')];
  if (image) return [forbidden(`${path}.imageFrom`, 'may not be specified when `image` is not empty')];
  return others.has(imageFrom) ? [] : [notFoundField(`${path}.imageFrom`, imageFrom)];
}

function validateConditions(entry: DeferContainer, path: string): FieldError[] {
  const { trigger, onReasons = [], when, failurePolicy } = entry;
  const repeated = repeats(onReasons);
  const errors = onReasons.flatMap((reason, index): FieldError[] => {
    const at = `${path}.onReasons[${index}]`;
    if (repeated[index]) return [duplicate(at, reason)];
    return (terminationReasons as readonly string[]).includes(reason)
      ? []
      : [notSupported(at, reason, terminationReasons)];
  });
  errors.push(...choiceErrors(when, `${path}.when`, outcomes));
  if (when && when !== 'Always' && trigger !== 'PostExit') {
    errors.push(invalid(`${path}.when`, when, "must be 'Always' when `trigger` is not 'PostExit'"));
  }
  return allErrors(errors, choiceErrors(failurePolicy, `${path}.failurePolicy`, failurePolicies));
}

export const validateDeferSettings = (spec: PodSpec): FieldError[] =>
  allErrors(
    validateReserve(spec),
    spec.preStopPolicy === undefined ? [] : choiceErrors(spec.preStopPolicy, 'spec.preStopPolicy', preStopPolicies),
    validateGraceExtension(spec),
  );

/** The reserve for PostExit entries is a part of the grace period. */
function validateReserve({
  postExitGracePeriodSeconds: reserve,
  terminationGracePeriodSeconds = 0,
}: PodSpec): FieldError[] {
  const path = 'spec.postExitGracePeriodSeconds';
  const errors = nonNegative(reserve, path);
  if (reserve === undefined || errors.length > 0) return errors;
  // Upstream treats a negative grace period as 1 s.
  const grace = terminationGracePeriodSeconds < 0 ? 1 : terminationGracePeriodSeconds;
  return reserve < grace
    ? []
    : [invalid(path, reserve, `must be less than terminationGracePeriodSeconds (${terminationGracePeriodSeconds})`)];
}

function validateGraceExtension(spec: PodSpec): FieldError[] {
  const fields = [
    'deferContainerGracePeriodExtensionInterval',
    'deferContainerGracePeriodExtensionCount',
  ] as const satisfies readonly (keyof PodSpec)[];
  const errors = fields.flatMap((field) => positive(spec[field], `spec.${field}`));
  const given = fields.filter((field) => spec[field] !== undefined);
  if (given.length === 1) {
    for (const field of fields) {
      if (!given.includes(field)) errors.push(required(`spec.${field}`, `must be set when \`${given[0]}\` is set`));
    }
  }
  if (spec.deferContainerGracePeriodExtension === true) {
    const cause = 'may not be set when `deferContainerGracePeriodExtension` is true';
    errors.push(...given.map((field) => forbidden(`spec.${field}`, cause)));
  }
  return errors;
}
