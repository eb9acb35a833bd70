import { describe, expect, it } from 'vitest';
import { fieldErrorText } from '../../../../machinery/field-error.ts';
import { eventKind } from '../../../core/v1/event/index.ts';
import type { CoreV1Event, EventsV1Event } from '../../../generated/types.ts';
import { created, NOW } from '../../../testing.ts';
import { fromCoreEvent, toCoreEvent } from './conversion.ts';
import { eventsV1EventKind } from './index.ts';
import { validateNewEventUpdate } from './validation.ts';

const regarding = { kind: 'Pod', namespace: 'default', name: 'p' };
const event: Omit<EventsV1Event, 'apiVersion' | 'kind' | 'metadata'> = {
  eventTime: '2026-01-31T11:59:00.000000Z',
  reportingController: 'x.io/c',
  reportingInstance: 'i',
  action: 'Doing',
  reason: 'Done',
  type: 'Normal',
  regarding,
  note: 'n',
};
const stored = (): CoreV1Event => {
  const core = toCoreEvent(created(eventsV1EventKind, event).object);
  return { ...core, metadata: { ...core.metadata, resourceVersion: '1' } };
};

it('an Event of events.k8s.io is converted to a core Event and back without loss', () => {
  const full = {
    ...event,
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { name: 'a', namespace: 'default' },
    related: { name: 'r' },
    series: { count: 2, lastObservedTime: '2026-01-31T11:59:00.000000Z' },
    deprecatedCount: 1,
    deprecatedSource: { component: 'c' },
    deprecatedFirstTimestamp: '2026-01-31T11:59:00Z',
    deprecatedLastTimestamp: '2026-01-31T11:59:00Z',
  };
  const core = toCoreEvent(full);
  expect(core).toMatchObject({
    apiVersion: 'v1',
    involvedObject: regarding,
    message: 'n',
    reportingComponent: 'x.io/c',
    count: 1,
  });
  expect(fromCoreEvent(core)).toEqual(full);
  expect(eventKind.row(core, { now: NOW })).toEqual(eventsV1EventKind.row(full, { now: NOW }));
});

describe('a new Event of events.k8s.io', () => {
  it('a valid Event of events.k8s.io has no errors', () => {
    expect(created(eventsV1EventKind, event).errors).toEqual([]);
  });
  it('Events of events.k8s.io have more required fields than core Events', () => {
    const { eventTime: _, ...timeless } = event;
    const bad = {
      ...timeless,
      type: 'Odd',
      deprecatedCount: 1,
      deprecatedSource: { host: 'h' },
      series: { count: 1, lastObservedTime: '2026-01-31T11:59:00Z' },
    };
    expect(created(eventsV1EventKind, bad).errors).toEqual([
      'series.count: Invalid value: "": should be at least 2',
      'eventTime: Required value',
      'type: Invalid value: "": has invalid value: Odd',
      'count: Invalid value: "": needs to be unset',
      'source: Invalid value: "": needs to be unset',
    ]);
  });
  it('an Event of events.k8s.io may be a warning and a series', () => {
    const series = { count: 2, lastObservedTime: event.eventTime };
    expect(created(eventsV1EventKind, { ...event, type: 'Warning', series }).errors).toEqual([]);
  });
  it('a new Event of events.k8s.io may not contain the fields for older clients', () => {
    const older = {
      deprecatedSource: { component: 'c' },
      deprecatedFirstTimestamp: '2026-01-31T11:59:00Z',
      deprecatedLastTimestamp: '2026-01-31T11:59:00Z',
    };
    expect(created(eventsV1EventKind, { ...event, ...older }).errors).toEqual(
      ['firstTimestamp', 'lastTimestamp', 'source'].map((field) => `${field}: Invalid value: "": needs to be unset`),
    );
  });
  it('the errors of a stored series are reported only if it changes', () => {
    const incomplete = { ...stored(), series: { count: 1 } } as CoreV1Event;
    expect(validateNewEventUpdate(incomplete, incomplete)).toEqual([]);
    expect(validateNewEventUpdate(incomplete, stored()).map(fieldErrorText)).toEqual([
      'series.count: Invalid value: "": should be at least 2',
      'series.lastObservedTime: Required value',
    ]);
  });
  it('errors of Events of events.k8s.io contain the field name reportingController of that group', () => {
    expect(created(eventsV1EventKind, { ...event, reportingController: 'a b' }).errors).toEqual([
      expect.stringMatching(/^reportingController: Invalid value: "a b": name part must/),
    ]);
  });
});

it('an update of an Event of events.k8s.io may change only the series', () => {
  const old = stored();
  const series = { count: 2, lastObservedTime: '2026-01-31T11:59:00.000000Z' };
  expect(validateNewEventUpdate({ ...old, series }, old)).toEqual([]);
  expect(
    validateNewEventUpdate({ ...old, message: 'm', reportingComponent: 'x.io/d' }, old).map(fieldErrorText),
  ).toEqual([
    'message: Invalid value: "m": field is immutable',
    'reportingController: Invalid value: "x.io/d": field is immutable',
  ]);
});
