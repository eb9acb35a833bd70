/** Validation of Deployments. Source: pkg/apis/apps/validation of v1.33 (behavior and wording). */
import {
  allErrors,
  type FieldError,
  forbidden,
  invalid,
  notSupported,
  required,
} from '../../../../machinery/field-error.ts';
import type {
  Deployment,
  DeploymentSpec,
  DeploymentStrategy,
  RollingUpdateDeployment,
} from '../../../generated/types.ts';
import { amountOf, intOrPercentErrors, percentLimitErrors } from '../../../int-or-percent.ts';
import { at, nonNegative } from '../../../rules.ts';
import { validateParts } from '../replica-status.ts';
import { validateReplicaTemplate } from '../replica-template.ts';
import { validateCollisions } from '../workload-rules.ts';

const STRATEGY = 'spec.strategy';
const ROLLING_UPDATE = `${STRATEGY}.rollingUpdate`;

function validateRollingUpdate({ maxUnavailable = 0, maxSurge = 0 }: RollingUpdateDeployment): FieldError[] {
  const errorsAt = (name: string, value: number | string, texts: string[]): FieldError[] =>
    texts.map((text) => invalid(`${ROLLING_UPDATE}.${name}`, value, text));
  const isZero = amountOf(maxUnavailable) === 0 && amountOf(maxSurge) === 0;
  return allErrors(
    errorsAt('maxUnavailable', maxUnavailable, intOrPercentErrors(maxUnavailable)),
    errorsAt('maxSurge', maxSurge, intOrPercentErrors(maxSurge)),
    errorsAt('maxUnavailable', maxUnavailable, isZero ? ['may not be 0 when `maxSurge` is 0'] : []),
    errorsAt('maxUnavailable', maxUnavailable, percentLimitErrors(maxUnavailable)),
  );
}

function validateStrategy(strategy: DeploymentStrategy = {}): FieldError[] {
  const { type, rollingUpdate } = strategy;
  if (type === 'Recreate')
    return rollingUpdate === undefined
      ? []
      : [forbidden(ROLLING_UPDATE, "may not be specified when strategy `type` is 'Recreate'")];
  if (type !== 'RollingUpdate') return [notSupported(STRATEGY, strategy, ['Recreate', 'RollingUpdate'])];
  return rollingUpdate === undefined
    ? [required(ROLLING_UPDATE, 'this should be defaulted and never be nil')]
    : validateRollingUpdate(rollingUpdate);
}

function validateDeadline({
  progressDeadlineSeconds: seconds,
  minReadySeconds = 0,
}: Partial<DeploymentSpec>): FieldError[] {
  if (seconds === undefined) return [];
  const texts = seconds <= minReadySeconds ? ['must be greater than minReadySeconds'] : [];
  return [...nonNegative(seconds), ...texts].map((text) => invalid('spec.progressDeadlineSeconds', seconds, text));
}

const replicas = at('spec.replicas', nonNegative);
const minReadySeconds = at('spec.minReadySeconds', nonNegative);
const revisionHistoryLimit = at('spec.revisionHistoryLimit', nonNegative);

export function validateDeployment(deployment: Deployment, old?: Deployment): FieldError[] {
  const { spec = {} as Partial<DeploymentSpec> } = deployment;
  return allErrors(
    replicas(deployment),
    validateReplicaTemplate(spec, old?.spec),
    validateStrategy(spec.strategy),
    minReadySeconds(deployment),
    revisionHistoryLimit(deployment),
    validateDeadline(spec),
  );
}

const counts = [
  'observedGeneration',
  'replicas',
  'updatedReplicas',
  'readyReplicas',
  'availableReplicas',
  'unavailableReplicas',
  'collisionCount',
].map((name) => at(`status.${name}`, nonNegative));

export const validateDeploymentStatus = (deployment: Deployment, old?: Deployment): FieldError[] =>
  allErrors(
    ...counts.map((rule) => rule(deployment)),
    validateParts(deployment.status ?? {}, ['updatedReplicas', 'readyReplicas', 'availableReplicas']),
    validateCollisions(deployment, old),
  );
