/** The Event of events.k8s.io, which is stored as a core Event. Source: pkg/apis/events and pkg/registry/core/event of v1.33. */
import type { KubeObject } from '../../../../machinery/meta.ts';
import { eventColumns, eventRow } from '../../../core/v1/event/table.ts';
import { kind } from '../../../declaration.ts';
import type { CoreV1Event, EventsV1Event } from '../../../generated/types.ts';
import { EVENTS } from '../../../resources.ts';
import { fromCoreEvent, toCoreEvent } from './conversion.ts';
import { validateNewEvent, validateNewEventUpdate } from './validation.ts';

export const eventsV1EventKind = kind<EventsV1Event>('events.k8s.io/v1', 'Event', {
  shortNames: ['ev'],
  storage: {
    resource: EVENTS,
    toStored: (object: KubeObject) => toCoreEvent(object as EventsV1Event),
    fromStored: (object: KubeObject) => fromCoreEvent(object as CoreV1Event),
  },
  validateCreate: (event) => validateNewEvent(toCoreEvent(event)),
  validateUpdate: (event, old) => validateNewEventUpdate(toCoreEvent(event), toCoreEvent(old)),
  selectableFields(event) {
    const object = event.regarding ?? {};
    return {
      'regarding.kind': object.kind ?? '',
      'regarding.namespace': object.namespace ?? '',
      'regarding.name': object.name ?? '',
      'regarding.uid': object.uid ?? '',
      'regarding.apiVersion': object.apiVersion ?? '',
      'regarding.resourceVersion': object.resourceVersion ?? '',
      'regarding.fieldPath': object.fieldPath ?? '',
      reason: event.reason ?? '',
      reportingController: event.reportingController ?? '',
      type: event.type ?? '',
    };
  },
  propagation: 'unsupported',
  columns: eventColumns,
  row: (event, context) => eventRow(toCoreEvent(event), context),
});
