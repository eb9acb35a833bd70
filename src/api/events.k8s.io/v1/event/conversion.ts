/** Converts between the Event of events.k8s.io and the core Event, without loss. Source: pkg/apis/events/v1 of v1.33. */
import { defined } from '../../../../machinery/drop-undefined.ts';
import type { CoreV1Event, EventsV1Event } from '../../../generated/types.ts';

export const toCoreEvent = (event: EventsV1Event): CoreV1Event =>
  defined<CoreV1Event>({
    apiVersion: 'v1',
    kind: 'Event',
    metadata: event.metadata,
    involvedObject: event.regarding ?? {},
    reason: event.reason,
    message: event.note,
    source: event.deprecatedSource,
    firstTimestamp: event.deprecatedFirstTimestamp,
    lastTimestamp: event.deprecatedLastTimestamp,
    count: event.deprecatedCount,
    type: event.type,
    eventTime: event.eventTime,
    series: event.series,
    action: event.action,
    related: event.related,
    reportingComponent: event.reportingController,
    reportingInstance: event.reportingInstance,
  });

export const fromCoreEvent = (event: CoreV1Event): EventsV1Event =>
  defined<EventsV1Event>({
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: event.metadata,
    // An Event that was written as a core Event may have no eventTime.
    eventTime: event.eventTime as string,
    series: event.series as EventsV1Event['series'],
    reportingController: event.reportingComponent,
    reportingInstance: event.reportingInstance,
    action: event.action,
    reason: event.reason,
    regarding: event.involvedObject,
    related: event.related,
    note: event.message,
    type: event.type,
    deprecatedSource: event.source,
    deprecatedFirstTimestamp: event.firstTimestamp,
    deprecatedLastTimestamp: event.lastTimestamp,
    deprecatedCount: event.count,
  });
