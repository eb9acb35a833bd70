/**
 * Validation of Events in their stored form. An Event with an eventTime, as clients of events.k8s.io create it, must meet stricter rules.
 * Source: pkg/apis/core/validation/events.go of v1.33 (behavior and wording).
 */
import { allErrors, type FieldError, invalid, required } from '../../../../machinery/field-error.ts';
import { dns1123SubdomainErrors, qualifiedNameErrors } from '../../../../machinery/names.ts';
import type { CoreV1Event } from '../../../generated/types.ts';

const MAX_CHARACTERS = 128;
const MAX_MESSAGE_CHARACTERS = 1024;
const NAMESPACE_MISMATCH = 'does not match event.namespace';

function bounded(field: string, value: string | undefined, isRequired: boolean, max: number): FieldError[] {
  return allErrors(
    isRequired && !value ? [required(field)] : [],
    Buffer.byteLength(value ?? '') > max ? [invalid(field, '', `can have at most ${max} characters`)] : [],
  );
}

function validateNewer(event: CoreV1Event, reporter: 'reportingComponent' | 'reportingController'): FieldError[] {
  const errors: FieldError[] = [];
  const namespace = event.metadata.namespace ?? '';
  if (!event.involvedObject?.namespace && namespace !== 'default' && namespace !== 'kube-system') {
    errors.push(invalid('involvedObject.namespace', '', NAMESPACE_MISMATCH));
  }
  const component = event.reportingComponent ?? '';
  if (component === '') errors.push(required(reporter));
  errors.push(...qualifiedNameErrors(component).map((text) => invalid(reporter, component, text)));
  return allErrors(
    errors,
    bounded('reportingInstance', event.reportingInstance, true, MAX_CHARACTERS),
    bounded('action', event.action, true, MAX_CHARACTERS),
    bounded('reason', event.reason, true, MAX_CHARACTERS),
    bounded('message', event.message, false, MAX_MESSAGE_CHARACTERS),
  );
}

/** `reporter`: the name that the field reportingComponent has in the API group of the request. */
export function validateEvent(
  event: CoreV1Event,
  reporter: 'reportingComponent' | 'reportingController',
): FieldError[] {
  const errors: FieldError[] = [];
  const namespace = event.metadata.namespace ?? '';
  const involved = event.involvedObject?.namespace ?? '';
  if (event.eventTime !== undefined) {
    errors.push(...validateNewer(event, reporter));
  } else if (involved === '' ? namespace !== '' && namespace !== 'default' : namespace !== involved) {
    errors.push(invalid('involvedObject.namespace', involved, NAMESPACE_MISMATCH));
  }
  errors.push(...dns1123SubdomainErrors(namespace).map((text) => invalid('namespace', namespace, text)));
  return errors;
}
