/** Validation of DaemonSets. Source: pkg/apis/apps/validation of v1.33 (behavior and wording). */
import { allErrors, type FieldError, invalid, notSupported, required } from '../../../../machinery/field-error.ts';
import { labelSelectorErrors } from '../../../../machinery/labels.ts';
import { validateTemplate } from '../../../core/v1/pod-template/template.ts';
import type { DaemonSet, DaemonSetUpdateStrategy, RollingUpdateDaemonSet } from '../../../generated/types.ts';
import { amountOf, intOrPercentErrors, percentLimitErrors } from '../../../int-or-percent.ts';
import { at, nonNegative } from '../../../rules.ts';
import {
  validateCollisions,
  validateLastingTemplate,
  validateNotEmpty,
  validateTemplateLabels,
} from '../workload-rules.ts';

const STRATEGY = 'spec.updateStrategy';

function validateRollingUpdate({ maxUnavailable = 0, maxSurge = 0 }: RollingUpdateDaemonSet): FieldError[] {
  const amounts = Object.entries({ maxUnavailable, maxSurge });
  const path = `${STRATEGY}.rollingUpdate`;
  const errors = [intOrPercentErrors, percentLimitErrors].flatMap((errorsOf) =>
    amounts.flatMap(([name, value]) => errorsOf(value).map((text) => invalid(`${path}.${name}`, value, text))),
  );
  const [isUnavailable, isSurge] = [amountOf(maxUnavailable) !== 0, amountOf(maxSurge) !== 0];
  if (isUnavailable && isSurge)
    errors.push(invalid(`${path}.maxSurge`, maxSurge, 'may not be set when maxUnavailable is non-zero'));
  if (!isUnavailable && !isSurge) errors.push(required(`${path}.maxUnavailable`, 'cannot be 0 when maxSurge is 0'));
  return errors;
}

function validateStrategy(strategy: DaemonSetUpdateStrategy = {}): FieldError[] {
  if (strategy.type === 'OnDelete') return [];
  if (strategy.type !== 'RollingUpdate') return [notSupported(STRATEGY, strategy, ['RollingUpdate', 'OnDelete'])];
  return strategy.rollingUpdate === undefined
    ? [required(`${STRATEGY}.rollingUpdate`)]
    : validateRollingUpdate(strategy.rollingUpdate);
}

const minReadySeconds = at('spec.minReadySeconds', nonNegative);
const revisionHistoryLimit = at('spec.revisionHistoryLimit', nonNegative);

export function validateDaemonSet(daemonSet: DaemonSet, old?: DaemonSet): FieldError[] {
  const { selector, template, updateStrategy } = daemonSet.spec ?? {};
  return allErrors(
    labelSelectorErrors(selector, 'spec.selector'),
    validateTemplateLabels(selector, template),
    validateNotEmpty(selector, 'daemonset'),
    validateTemplate(template, old?.spec?.template, 'spec.template'),
    validateLastingTemplate(template, 'DaemonSet'),
    minReadySeconds(daemonSet),
    validateStrategy(updateStrategy),
    revisionHistoryLimit(daemonSet),
  );
}

const counts = [
  'currentNumberScheduled',
  'numberMisscheduled',
  'desiredNumberScheduled',
  'numberReady',
  'observedGeneration',
  'updatedNumberScheduled',
  'numberAvailable',
  'numberUnavailable',
  'collisionCount',
].map((name) => at(`status.${name}`, nonNegative));

export const validateDaemonSetStatus = (daemonSet: DaemonSet, old?: DaemonSet): FieldError[] =>
  allErrors(...counts.map((rule) => rule(daemonSet)), validateCollisions(daemonSet, old));
