import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  addQuantities,
  canonicalQuantity,
  compareQuantities,
  formatQuantity,
  maxQuantity,
  multiplyQuantity,
  parseQuantity,
  type Quantity,
  quantityMilli,
  quantityValue,
  subtractQuantities,
} from './quantity.ts';

const quantity = (text: string): Quantity => {
  const parsed = parseQuantity(text);
  if (parsed === undefined) throw new Error(`not a quantity: ${text}`);
  return parsed;
};

describe('canonicalQuantity', () => {
  it.each([
    ['0', '0'],
    ['0Mi', '0'],
    ['0.000', '0'],
    ['500m', '500m'],
    ['0.5', '500m'],
    ['1.5', '1500m'],
    ['1000m', '1'],
    ['1000', '1k'],
    ['1024', '1024'],
    ['1.5Gi', '1536Mi'],
    ['1024Mi', '1Gi'],
    ['1023Ki', '1023Ki'],
    ['0.5Ki', '512'],
    ['1.1Ki', '1126400m'],
    ['1Ki', '1Ki'],
    ['100Ei', '9223372036854775807'],
    ['1000E', '1000E'],
    ['1e3', '1e3'],
    ['12E6', '12e6'],
    ['1500e-3', '1500e-3'],
    ['1e2', '100'],
    ['1E', '1E'],
    ['.5', '500m'],
    ['5.', '5'],
    ['+5', '5'],
    ['-1.5Gi', '-1536Mi'],
    ['100n', '100n'],
    ['0.1n', '1n'],
    ['-0.1n', '-1n'],
    ['1e-300', '1e-9'],
    ['1u', '1u'],
    [' 1 ', '1'],
    [0.1, '100m'],
    [2, '2'],
    [1e21, '1e21'],
    [-3, '-3'],
  ])('canonicalQuantity(%j) is %j', (input, expected) => {
    expect(canonicalQuantity(input)).toBe(expected);
  });

  it.each([
    '',
    '.',
    '-',
    '1x',
    '1 Mi',
    '1KI',
    '1mi',
    'Mi',
    '1.2.3',
    '0x10',
    '1e',
    '1e1.5',
    '1ee3',
    '--1',
    'NaN',
    '1e1000000000',
  ])('canonicalQuantity() rejects %j', (input) => {
    expect(canonicalQuantity(input)).toBeUndefined();
  });
  it('canonicalQuantity() rejects NaN and Infinity', () => {
    expect(canonicalQuantity(Number.NaN)).toBeUndefined();
    expect(canonicalQuantity(Number.POSITIVE_INFINITY)).toBeUndefined();
  });
});

describe('arithmetic of quantities', () => {
  it.each([
    ['100m', 100n, 1n],
    ['1n', 1n, 1n],
    ['1500m', 1500n, 2n],
    ['-1500m', -1500n, -1n],
    ['1Gi', 1073741824000n, 1073741824n],
  ])('%s is %d thousandths and %d units, rounded up', (text, milli, units) => {
    expect([quantityMilli(quantity(text)), quantityValue(quantity(text))]).toEqual([milli, units]);
  });
  it.each([
    ['1Gi', '512Mi', '1536Mi'],
    ['0', '512Mi', '512Mi'],
    ['100m', '1', '1100m'],
    ['1Gi', '1G', '2073741824'],
  ])('%s + %s = %s', (a, b, sum) => {
    expect(formatQuantity(addQuantities(quantity(a), quantity(b)))).toBe(sum);
  });
  it('multiplyQuantity() and maxQuantity() are exact', () => {
    expect(formatQuantity(multiplyQuantity(quantity('1.5Gi'), 3))).toBe('4608Mi');
    expect(maxQuantity(quantity('1G'), quantity('1Gi'))).toEqual(quantity('1Gi'));
  });
});

const suffixes = ['n', 'u', 'm', '', 'k', 'M', 'G', 'T', 'P', 'E', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'e3', 'E-2', 'e+6'];
const text = fc
  .tuple(
    fc.constantFrom('', '-', '+'),
    fc.nat({ max: 999_999 }),
    fc.option(fc.stringMatching(/^[0-9]{1,6}$/)),
    fc.constantFrom(...suffixes),
  )
  .map(([sign, whole, fraction, suffix]) => `${sign}${whole}${fraction === null ? '' : `.${fraction}`}${suffix}`);
const any = text.map(quantity);

describe('properties of quantities', () => {
  it('the canonical text is the same amount and is canonical itself', () => {
    fc.assert(
      fc.property(any, (value) => {
        const canonical = formatQuantity(value);
        const again = quantity(canonical);
        expect(again.nano).toBe(value.nano);
        expect(formatQuantity(again)).toBe(canonical);
        expect(canonical).not.toMatch(/\./);
      }),
    );
  });
  it('canonicalQuantity() agrees with formatQuantity() for integers with a suffix', () => {
    const plain = fc.tuple(fc.integer({ min: 1, max: 999 }), fc.constantFrom(...suffixes.slice(0, 16)));
    fc.assert(
      fc.property(plain, ([digits, suffix]) => {
        expect(canonicalQuantity(`${digits}${suffix}`)).toBe(formatQuantity(quantity(`${digits}${suffix}`)));
      }),
    );
  });
  it('comparison agrees with subtraction, addition commutes, and multiplication repeats addition', () => {
    fc.assert(
      fc.property(any, any, fc.integer({ min: 0, max: 5 }), (a, b, times) => {
        expect(compareQuantities(a, b)).toBe(compareQuantities(subtractQuantities(a, b), quantity('0')));
        expect(addQuantities(a, b).nano).toBe(addQuantities(b, a).nano);
        let sum = quantity('0');
        for (let i = 0; i < times; i++) sum = addQuantities(sum, a);
        expect(multiplyQuantity(a, times).nano).toBe(sum.nano);
      }),
    );
  });
  it('quantityValue() and quantityMilli() round up by less than one', () => {
    fc.assert(
      fc.property(any, (value) => {
        const lost = quantityValue(value) * 1_000_000_000n - value.nano;
        expect(lost >= 0n && lost < 1_000_000_000n).toBe(true);
        const lostMilli = quantityMilli(value) * 1_000_000n - value.nano;
        expect(lostMilli >= 0n && lostMilli < 1_000_000n).toBe(true);
      }),
    );
  });
  it('parseQuantity() never throws', () => {
    fc.assert(
      fc.property(fc.string(), (input) => {
        const parsed = parseQuantity(input);
        if (parsed !== undefined) expect(parseQuantity(formatQuantity(parsed))?.nano).toBe(parsed.nano);
      }),
    );
  });
});

it('parsed quantities do not keep the longer texts in memory from which they were cut', () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  collect();
  const before = process.memoryUsage().heapUsed;
  for (let i = 0; i < 50; i++) canonicalQuantity(`${1_000_000_000_000 + i}.0${' '.repeat(1_000_000)}`);
  collect();
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(10_000_000);
});
