/**
 * Validation of Events written through events.k8s.io, in their stored form. The rules are stricter than the rules for core Events. Like
 * upstream's, the errors contain the field names of the core form, except reportingController.
 * Source: pkg/apis/core/validation/events.go of v1.33 (behavior and wording).
 */
import { allErrors, type FieldError, invalid, required } from '../../../../machinery/field-error.ts';
import { jsonEqual } from '../../../../machinery/json-value.ts';
import { dns1123SubdomainErrors } from '../../../../machinery/names.ts';
import { IMMUTABLE_TEXT, validateObjectMeta, validateObjectMetaUpdate } from '../../../../machinery/object-meta.ts';
import { validateEvent } from '../../../core/v1/event/validation.ts';
import type { CoreV1Event } from '../../../generated/types.ts';

function validateSeries({ series }: CoreV1Event): FieldError[] {
  if (series === undefined) return [];
  return allErrors(
    (series.count ?? 0) < 2 ? [invalid('series.count', '', 'should be at least 2')] : [],
    series.lastObservedTime === undefined ? [required('series.lastObservedTime')] : [],
  );
}

export function validateNewEvent(event: CoreV1Event): FieldError[] {
  const errors = allErrors(
    validateEvent(event, 'reportingController'),
    validateObjectMeta(event.metadata, { namespaced: true, nameErrors: dns1123SubdomainErrors }),
    validateSeries(event),
  );
  if (event.eventTime === undefined) errors.push(required('eventTime'));
  if (event.type !== 'Normal' && event.type !== 'Warning') {
    errors.push(invalid('type', '', `has invalid value: ${event.type ?? ''}`));
  }
  const unset = (field: string, isSet: boolean): void => {
    if (isSet) errors.push(invalid(field, '', 'needs to be unset'));
  };
  unset('firstTimestamp', event.firstTimestamp !== undefined);
  unset('lastTimestamp', event.lastTimestamp !== undefined);
  unset('count', (event.count ?? 0) !== 0);
  unset('source', Boolean(event.source?.component || event.source?.host));
  return errors;
}

const immutableFields = [
  'involvedObject',
  'reason',
  'message',
  'source',
  'firstTimestamp',
  'lastTimestamp',
  'count',
  'type',
  'eventTime',
  'action',
  'related',
  'reportingComponent',
  'reportingInstance',
] as const;

export function validateNewEventUpdate(event: CoreV1Event, old: CoreV1Event): FieldError[] {
  const errors = allErrors(
    validateEvent(event, 'reportingController'),
    validateObjectMetaUpdate(event.metadata, old.metadata),
    jsonEqual(event.series ?? null, old.series ?? null) ? [] : validateSeries(event),
  );
  for (const name of immutableFields) {
    if (jsonEqual(event[name] ?? null, old[name] ?? null)) continue;
    const field = name === 'reportingComponent' ? 'reportingController' : name;
    errors.push(invalid(field, event[name], IMMUTABLE_TEXT));
  }
  return errors;
}
