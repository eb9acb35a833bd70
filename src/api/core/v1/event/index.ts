/**
 * The Event of the core group, the form in which Events of events.k8s.io are also stored.
 * Source: pkg/registry/core/event and pkg/apis/core of v1.33.
 */
import type { FieldError } from '../../../../machinery/field-error.ts';
import { kind } from '../../../declaration.ts';
import type { CoreV1Event } from '../../../generated/types.ts';
import { eventColumns, eventRow } from './table.ts';
import { validateEvent } from './validation.ts';

const validate = (event: CoreV1Event): FieldError[] => validateEvent(event, 'reportingComponent');

export const eventKind = kind<CoreV1Event>('v1', 'Event', {
  shortNames: ['ev'],
  // These functions replace the defaults of kind(), which validate all metadata: like upstream, only the namespace of a core Event is
  // validated.
  validateCreate: validate,
  validateUpdate: validate,
  selectableFields(event) {
    const object = event.involvedObject ?? {};
    return {
      'involvedObject.kind': object.kind ?? '',
      'involvedObject.namespace': object.namespace ?? '',
      'involvedObject.name': object.name ?? '',
      'involvedObject.uid': object.uid ?? '',
      'involvedObject.apiVersion': object.apiVersion ?? '',
      'involvedObject.resourceVersion': object.resourceVersion ?? '',
      'involvedObject.fieldPath': object.fieldPath ?? '',
      reason: event.reason ?? '',
      reportingComponent: event.reportingComponent ?? '',
      source: event.source?.component || event.reportingComponent || '',
      type: event.type ?? '',
    };
  },
  indexedFields: ['involvedObject.uid', 'involvedObject.name'],
  propagation: 'unsupported',
  columns: eventColumns,
  row: eventRow,
});
