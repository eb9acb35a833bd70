import { describe, expect, it } from 'vitest';
import type { LabelSelectorObject } from '../machinery/labels.ts';
import { ageCell, humanDuration, labelsCell, selectorCell } from './table.ts';

const s = 1000;
const m = 60 * s;
const h = 60 * m;
const d = 24 * h;
const y = 365 * d;

describe('humanDuration', () => {
  it.each([
    [-2 * s, '<invalid>'],
    [-1.5 * s, '0s'],
    [0, '0s'],
    [999, '0s'],
    [119 * s, '119s'],
    [2 * m, '2m'],
    [3 * m + 20 * s, '3m20s'],
    [10 * m + 20 * s, '10m'],
    [179 * m, '179m'],
    [3 * h, '3h'],
    [7 * h + 59 * m, '7h59m'],
    [8 * h + 59 * m, '8h'],
    [47 * h, '47h'],
    [2 * d, '2d'],
    [5 * d + 3 * h, '5d3h'],
    [8 * d + 3 * h, '8d'],
    [729 * d, '729d'],
    [2 * y, '2y'],
    [2 * y + 20 * d, '2y20d'],
    [8 * y + 20 * d, '8y'],
  ])('humanDuration() of %d ms is %s', (millis, expected) => {
    expect(humanDuration(millis)).toBe(expected);
  });
});

it('ageCell() returns the age, or <unknown>', () => {
  expect(ageCell(undefined, 0)).toBe('<unknown>');
  expect(ageCell('1970-01-01T00:00:00Z', 90 * s)).toBe('90s');
});

it('labelsCell() returns the labels sorted by key, or <none>', () => {
  expect(labelsCell(undefined)).toBe('<none>');
  expect(labelsCell({ b: '2', a: '1' })).toBe('a=1,b=2');
});

describe('selectorCell', () => {
  const expression = (key: string, operator: string, values?: string[]) => ({
    key,
    operator,
    ...(values === undefined ? {} : { values }),
  });
  it.each<[string, LabelSelectorObject | undefined, string]>([
    ['no selector', undefined, '<none>'],
    ['an empty selector', {}, '<none>'],
    [
      'a selector with all operators, sorted by key',
      {
        matchLabels: { m: '1' },
        matchExpressions: [
          expression('z', 'In', ['c', 'b']),
          expression('a', 'NotIn', ['d']),
          expression('e', 'Exists'),
          expression('n', 'DoesNotExist'),
        ],
      },
      'a notin (d),e,m=1,!n,z in (b,c)',
    ],
    ['a selector with an unknown operator', { matchExpressions: [expression('a', 'Odd')] }, '<error>'],
  ])('selectorCell() shows %s', (_, selector, text) => {
    expect(selectorCell(selector)).toBe(text);
  });
});
