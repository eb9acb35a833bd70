/**
 * Validates `status.termination`. Only a changed termination is validated, so that a stored status can always be written again.
 * Source: the specification of defer containers, "Status and events".
 */

import { repeats } from '../../../../../machinery/duplicates.ts';
import {
  allErrors,
  duplicate,
  type FieldError,
  invalid,
  notFoundField,
  notSupported,
  required,
} from '../../../../../machinery/field-error.ts';
import type { PodSpec, PodStatus, PodTermination, TerminatedContainer } from '../../../../generated/types.ts';
import { sameValue } from '../compare.ts';
import { terminationReasons } from '../status/termination-reasons.ts';
import { choiceErrors, nonNegative } from './validate-values.ts';

const path = 'status.termination';

export function validateTermination({ termination }: PodStatus, old: PodStatus, spec: PodSpec): FieldError[] {
  if (termination === undefined || sameValue(termination, old.termination)) return [];
  const entries = new Set((spec.deferContainers ?? []).map(({ name }) => name));
  return allErrors(
    choiceErrors(termination.reason, `${path}.reason`, terminationReasons),
    (['startedAt', 'deadline'] as const)
      .filter((field) => !termination[field])
      .map((field) => required(`${path}.${field}`)),
    nonNegative(termination.extendedSeconds, `${path}.extendedSeconds`),
    nonNegative(termination.outageSeconds, `${path}.outageSeconds`),
    validateTurn(termination, entries),
    validateSkip(termination, entries),
    validateTerminated(termination.containers ?? [], spec),
  );
}

function validateTurn({ turn }: PodTermination, entries: ReadonlySet<string>): FieldError[] {
  if (turn === undefined) return [];
  return allErrors(
    entries.has(turn.entry) ? [] : [notFoundField(`${path}.turn.entry`, turn.entry)],
    turn.since ? [] : [required(`${path}.turn.since`)],
  );
}

function validateSkip({ skip = [] }: PodTermination, entries: ReadonlySet<string>): FieldError[] {
  const repeated = repeats(skip);
  return skip.flatMap((name, index) => {
    const at = `${path}.skip[${index}]`;
    if (repeated[index]) return [duplicate(at, name)];
    return entries.has(name) ? [] : [notFoundField(at, name)];
  });
}

function validateTerminated(containers: readonly TerminatedContainer[], spec: PodSpec): FieldError[] {
  const kinds = new Map([
    ...(spec.initContainers ?? []).map(({ name }) => [name, 'init'] as const),
    ...spec.containers.map(({ name }) => [name, 'app'] as const),
  ]);
  const seen = new Set<string>();
  return containers.flatMap(({ name, kind, restartCount }, index) => {
    const at = `${path}.containers[${index}]`;
    const errors = nonNegative(restartCount, `${at}.restartCount`);
    const known = kinds.get(name);
    if (kind !== 'init' && kind !== 'app') errors.push(notSupported(`${at}.kind`, kind, ['init', 'app']));
    else if (known !== undefined && known !== kind) errors.push(invalid(`${at}.kind`, kind, `must be ${known}`));
    if (known === undefined) errors.push(notFoundField(`${at}.name`, name));
    if (seen.has(name)) errors.push(duplicate(`${at}.name`, name));
    seen.add(name);
    return errors;
  });
}
