/**
 * The Event of the core group: a report of something that happened to an object. Events of events.k8s.io are also
 * stored in this form.
 * Source: pkg/registry/core/event and pkg/apis/core of v1.33.
 */
import type { CoreV1Event } from '../../../generated/types.ts';
import type { KindDefinition } from '../../../kind.ts';
import { eventColumns, eventRow } from './table.ts';
import { validateEvent } from './validation.ts';

export const eventKind: KindDefinition<CoreV1Event> = {
  group: '',
  version: 'v1',
  kind: 'Event',
  plural: 'events',
  singular: 'event',
  shortNames: ['ev'],
  categories: [],
  namespaced: true,
  schema: 'CoreV1Event',
  validateCreate: (event) => validateEvent(event, 'reportingComponent'),
  validateUpdate: (event) => validateEvent(event, 'reportingComponent'),
  subresources: {},
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
  columns: eventColumns,
  row: eventRow,
};
