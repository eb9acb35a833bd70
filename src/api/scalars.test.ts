import { expect, it } from 'vitest';
import { cpuMillisOf } from '../machinery/testing.ts';
import { canonicalAmount, canonicalQuantityValue } from './scalars.ts';

const suffix = { error: "unable to parse quantity's suffix" };
const malformed = {
  error: "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
};

it.each(['1mi', '1e', '-.5Kim+3', '1-1', '1.2.3', '.'])('a quantity with an unknown suffix is an error: %s', (text) => {
  expect(canonicalQuantityValue(text)).toEqual(suffix);
});

it.each(['', 'x', '+', 'm', '1!', '1m-m', '1--1', '1m1m', '1m.1'])('a malformed quantity is an error: %j', (text) => {
  expect(canonicalQuantityValue(text)).toEqual(malformed);
});

it.each([
  ['digits', '1'.repeat(50_000)],
  ['suffixes', `1${'K'.repeat(200_000)}`],
])('a quantity of very many %s is rejected in linear time', (_, text) => {
  const reject = () => {
    expect(canonicalQuantityValue(`${text}!`)).toEqual(malformed);
    expect(canonicalQuantityValue(text)).toEqual(suffix);
  };
  expect(cpuMillisOf(reject)).toBeLessThan(1000);
});

it.each([
  ['100m', '100m'],
  ['1500m', '1500m'],
  ['1001u', '2m'],
  ['-1n', '-1m'],
  ['1500e-3', '1500e-3'],
  ['1e-300', '1e-3'],
  ['1Gi', '1Gi'],
])('the amount %s of a resource becomes %s, a whole number of thousandths', (text, expected) => {
  expect(canonicalAmount(text)).toEqual({ value: expected });
});
