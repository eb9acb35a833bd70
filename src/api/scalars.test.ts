import { expect, it } from 'vitest';
import { canonicalQuantityValue } from './scalars.ts';

const suffix = { error: "unable to parse quantity's suffix" };
const malformed = {
  error: "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
};

it.each(['1mi', '1e', '-.5Kim+3', '1-1', '1.2.3', '.'])('%s has no suffix that is known', (text) => {
  expect(canonicalQuantityValue(text)).toEqual(suffix);
});

it.each(['', 'x', '+', 'm', '1!', '1m-m', '1--1', '1m1m', '1m.1'])('%j is malformed', (text) => {
  expect(canonicalQuantityValue(text)).toEqual(malformed);
});

it.each([
  ['digits', '1'.repeat(50_000)],
  ['suffixes', `1${'K'.repeat(200_000)}`],
])('a text of very many %s is refused in linear time', (_, text) => {
  const began = process.cpuUsage();
  expect(canonicalQuantityValue(`${text}!`)).toEqual(malformed);
  expect(canonicalQuantityValue(text)).toEqual(suffix);
  expect(process.cpuUsage(began).user).toBeLessThan(1_000_000);
});
