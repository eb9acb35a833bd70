import { expect, it, test } from 'vitest';
import { created, headings, row, updated } from '../../../testing.ts';
import { controllerRevisionKind } from './index.ts';

const data = { spec: { template: { $patch: 'replace' } } };
const DATA = 'data: Required value: data';

test.each<[string, object, unknown[]]>([
  ['with data', { data, revision: 3 }, []],
  ['without data', { revision: 0 }, [`${DATA} is mandatory`]],
  ['whose data is null', { data: null, revision: 0 }, [`${DATA} is mandatory`]],
  ['whose data is a list', { data: [1], revision: 0 }, [`${DATA} must be a valid JSON object`]],
  ['whose data is a text', { data: 'a', revision: 0 }, [`${DATA} must be a valid JSON object`]],
  [
    'with a negative revision',
    { data, revision: -1 },
    ['revision: Invalid value: -1: must be greater than or equal to 0'],
  ],
])('the rules for a ControllerRevision %s', (_, fields, errors) => {
  expect(created(controllerRevisionKind, { ...fields }).errors).toEqual(errors);
});

it('an update of a ControllerRevision may change the revision, but not the data', () => {
  const old = { data, revision: 1 };
  expect(updated(controllerRevisionKind, old, { data, revision: 2 }).errors).toEqual([]);
  expect(updated(controllerRevisionKind, old, { data: { other: 1 }, revision: 1 }).errors).toEqual([
    'data: Invalid value: {"other":1}: field is immutable',
  ]);
});

const owner = { apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'web', uid: 'u', controller: true };
const metadata = { creationTimestamp: '2026-01-31T11:59:00Z' };

it('the table of ControllerRevisions has the columns of v1.33', () => {
  expect(headings(controllerRevisionKind).all).toBe('NAME | CONTROLLER | REVISION | AGE');
  const cells = (ownerReferences: object[]) =>
    row(controllerRevisionKind, { data, revision: 2, metadata: { ...metadata, ownerReferences } as never });
  expect(cells([{ ...owner, name: 'other', controller: false }, owner])).toEqual(['a', 'daemonset.apps/web', 2, '60s']);
  expect(cells([{ ...owner, apiVersion: 'v1', kind: 'Node' }])[1]).toBe('node/web');
  expect(cells([])[1]).toBe('<none>');
});
