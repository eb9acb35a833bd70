import { describe, expect, it } from 'vitest';
import type { CoreV1Event } from '../../../generated/types.ts';
import { created, headings, row } from '../../../testing.ts';
import { eventKind } from './index.ts';

const involvedObject = { kind: 'Pod', namespace: 'default', name: 'p', fieldPath: 'spec.containers{c}' };

describe('validation of Events', () => {
  const newer = {
    eventTime: '2026-01-31T11:00:00.000000Z',
    reportingComponent: 'x',
    reportingInstance: 'y',
    action: 'z',
    reason: 'r',
  };
  const system = { name: 'a', namespace: 'kube-system' };
  const other = { name: 'a', namespace: 'other' };
  it.each<[string, Partial<CoreV1Event>, string[]]>([
    ['about an object of its namespace', { involvedObject }, []],
    ['about a cluster-scoped object', { involvedObject: { kind: 'Node', name: 'n' } }, []],
    [
      'about an object of another namespace',
      { involvedObject: { namespace: 'other' } },
      ['involvedObject.namespace: Invalid value: "other": does not match event.namespace'],
    ],
    ['with eventTime and the fields that it requires', { involvedObject, ...newer }, []],
    [
      'with eventTime and texts of the greatest length',
      {
        involvedObject: { namespace: 'other' },
        ...newer,
        action: 'a'.repeat(128),
        message: 'm'.repeat(1024),
      },
      [],
    ],
    [
      'with eventTime and a message that is too long',
      { involvedObject, ...newer, message: 'm'.repeat(1025) },
      ['message: Invalid value: "": can have at most 1024 characters'],
    ],
    ['with eventTime, about a cluster-scoped object, in default', { ...newer }, []],
    ['with eventTime, about a cluster-scoped object, in kube-system', { ...newer, metadata: system }, []],
    [
      'with eventTime, about a cluster-scoped object, in another namespace',
      { ...newer, metadata: other },
      ['involvedObject.namespace: Invalid value: "": does not match event.namespace'],
    ],
    [
      'about a cluster-scoped object, in another namespace than default',
      { involvedObject: {}, metadata: system },
      ['involvedObject.namespace: Invalid value: "": does not match event.namespace'],
    ],
    [
      'in a namespace that is not a subdomain',
      { involvedObject: { namespace: 'A' }, metadata: { name: 'a', namespace: 'A' } },
      [
        expect.stringMatching(
          /^namespace: Invalid value: "A": a lowercase RFC 1123 subdomain must/,
        ) as unknown as string,
      ],
    ],
    [
      'with eventTime and without the fields that it requires',
      { involvedObject, eventTime: newer.eventTime, action: 'a'.repeat(129) },
      [
        'reportingComponent: Required value',
        'reportingComponent: Invalid value: "": name part must be non-empty',
        expect.stringContaining(
          'reportingComponent: Invalid value: "": name part must consist of',
        ) as unknown as string,
        'reportingInstance: Required value',
        'action: Invalid value: "": can have at most 128 characters',
        'reason: Required value',
      ],
    ],
  ])('the errors of an Event %s are reported', (_, event, expected) => {
    expect(created(eventKind, event).errors).toEqual(expected);
  });
});

describe('table of Events', () => {
  it('the table of Events has the headings of v1.33', () => {
    expect(headings(eventKind)).toEqual({
      narrow: 'LAST SEEN | TYPE | REASON | OBJECT | MESSAGE',
      all: 'LAST SEEN | TYPE | REASON | OBJECT | SUBOBJECT | SOURCE | MESSAGE | FIRST SEEN | COUNT | NAME',
    });
  });
  it.each<[string, Partial<CoreV1Event>, (string | number)[]]>([
    [
      'with firstTimestamp and lastTimestamp',
      {
        involvedObject,
        type: 'Normal',
        reason: 'Pulled',
        message: ' done\n',
        source: { component: 'kubelet', host: 'n1' },
        firstTimestamp: '2026-01-31T11:00:00Z',
        lastTimestamp: '2026-01-31T11:59:00Z',
        count: 3,
      },
      ['60s', 'Normal', 'Pulled', 'pod/p', 'spec.containers{c}', 'kubelet, n1', 'done', '60m', 3, 'a'],
    ],
    [
      'with eventTime, seen once',
      { involvedObject: { kind: 'Node' }, eventTime: '2026-01-31T11:58:00.000000Z', reportingComponent: 'scheduler' },
      ['2m', '', '', 'node', '', 'scheduler', '', '2m', 1, 'a'],
    ],
    [
      'with eventTime and a series',
      {
        involvedObject,
        eventTime: '2026-01-31T11:50:00.000000Z',
        series: { count: 7, lastObservedTime: '2026-01-31T11:59:30.000000Z' },
      },
      ['30s', '', '', 'pod/p', 'spec.containers{c}', '', '', '10m', 7, 'a'],
    ],
    [
      'without any time',
      { involvedObject },
      ['<unknown>', '', '', 'pod/p', 'spec.containers{c}', '', '', '<unknown>', 1, 'a'],
    ],
  ])('the table shows an Event %s', (_, event, expected) => {
    expect(row(eventKind, event)).toEqual(expected);
  });
});

it('Events can be selected by the fields of the involved object', () => {
  const { object } = created(eventKind, { involvedObject, reason: 'r', type: 'Normal', reportingComponent: 'x' });
  expect(eventKind.selectableFields?.(object)).toMatchObject({
    'involvedObject.kind': 'Pod',
    'involvedObject.name': 'p',
    'involvedObject.fieldPath': 'spec.containers{c}',
    'involvedObject.uid': '',
    reason: 'r',
    type: 'Normal',
    source: 'x',
  });
});
