import { expect, it } from 'vitest';
import { headings, row } from '../../../testing.ts';
import { componentStatusKind } from './index.ts';

it('the table of ComponentStatuses shows their health', () => {
  expect(componentStatusKind).toMatchObject({ plural: 'componentstatuses', shortNames: ['cs'], namespaced: false });
  expect(headings(componentStatusKind).all).toBe('NAME | STATUS | MESSAGE | ERROR');
  const rowOf = (...conditions: object[]) => row(componentStatusKind, { conditions });
  expect(rowOf({ type: 'Healthy', status: 'True', message: 'ok' })).toEqual(['a', 'Healthy', 'ok', '']);
  expect(rowOf({ type: 'Healthy', status: 'False', error: 'down' })).toEqual(['a', 'Unhealthy', '', 'down']);
  expect(rowOf({ type: 'Odd', status: 'True' })).toEqual(['a', 'Unknown', '', '']);
});
