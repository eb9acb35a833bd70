import { expect, it } from 'vitest';
import { fieldErrorText } from '../../../../machinery/field-error.ts';
import { created, headings, row } from '../../../testing.ts';
import { podRecordKind, recordName } from './index.ts';

const step = { key: 'Created', at: '2026-01-31T11:59:00.123000Z', type: 'Created' };
const record = { podName: 'web', podUID: '0123456789abcdef', transitions: [step] };

it('a PodRecord must name a Pod and the key and type of each step', () => {
  expect(created(podRecordKind, record).errors).toEqual([]);
  expect(
    created(podRecordKind, { podName: '', podUID: '', transitions: [{ ...step, key: '', type: '' }] }).errors,
  ).toEqual([
    'podName: Required value',
    'podUID: Required value',
    'transitions[0].key: Required value',
    'transitions[0].type: Required value',
  ]);
});

it('the time of each step of a PodRecord must be valid', () => {
  const { object } = created(podRecordKind, record);
  const transitions = [step, { ...step, at: 'noon' }];
  expect(podRecordKind.validateCreate({ ...object, transitions }).map(fieldErrorText)).toEqual([
    'transitions[1].at: Invalid value: "noon": is not a time',
  ]);
});

it('the table of PodRecords shows the Pod and the number of steps', () => {
  expect(headings(podRecordKind)).toEqual({
    narrow: 'POD | UID | STEPS | AGE',
    all: 'POD | UID | STEPS | AGE | NAME',
  });
  expect(row(podRecordKind, { ...record, metadata: { creationTimestamp: '2026-01-31T11:00:00Z' } })).toEqual([
    'web',
    '01234567',
    1,
    '60m',
    'a',
  ]);
});

it("the name of a PodRecord consists of the Pod's UID and the number of the part", () => {
  expect(recordName('u', 2)).toBe('u.2');
});
