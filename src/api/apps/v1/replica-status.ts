/**
 * The columns and the validation of the status that kinds with replicas share. Source: pkg/registry/apps/replicaset,
 * pkg/apis/apps/validation and pkg/apis/core/validation of v1.33 (behavior and wording).
 */
import { allErrors, type FieldError, invalid } from '../../../machinery/field-error.ts';
import type { KubeObject } from '../../../machinery/meta.ts';
import { at, nonNegative } from '../../rules.ts';
import { type CellColumn, column } from '../../table.ts';

interface ReplicaStatus {
  replicas?: number;
  updatedReplicas?: number;
  fullyLabeledReplicas?: number;
  readyReplicas?: number;
  availableReplicas?: number;
}

interface Replicated extends KubeObject {
  spec?: { replicas?: number };
  status?: ReplicaStatus;
}

export function validateParts(status: ReplicaStatus, parts: readonly (keyof ReplicaStatus)[]): FieldError[] {
  const { replicas = 0, readyReplicas = 0, availableReplicas = 0 } = status;
  const errors = parts.flatMap((name) => {
    const value = status[name] ?? 0;
    return value > replicas ? [invalid(`status.${name}`, value, 'cannot be greater than status.replicas')] : [];
  });
  if (availableReplicas > readyReplicas)
    errors.push(invalid('status.availableReplicas', availableReplicas, 'cannot be greater than readyReplicas'));
  return errors;
}

const PARTS = ['fullyLabeledReplicas', 'readyReplicas', 'availableReplicas'] as const;

const counts = ['replicas', ...PARTS, 'observedGeneration'].map((name) => at(`status.${name}`, nonNegative));

export const validateReplicaStatus = (object: Replicated): FieldError[] =>
  allErrors(...counts.map((rule) => rule(object)), validateParts(object.status ?? {}, PARTS));

export const replicaColumns: readonly CellColumn<Replicated>[] = [
  column('Desired', 'How many Pods there should be.', ({ spec }) => spec?.replicas ?? 0, { type: 'integer' }),
  column('Current', 'How many Pods there are.', ({ status }) => status?.replicas ?? 0, { type: 'integer' }),
  column('Ready', 'How many of the Pods are ready.', ({ status }) => status?.readyReplicas ?? 0, { type: 'integer' }),
];
