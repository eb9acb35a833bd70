/**
 * Exact resource quantities (`500m`, `1.5Gi`, `1e3`): an integer number of billionths, and the family of suffixes with which the
 * quantity is formatted. Fractions of a billionth are rounded away from zero.
 * Source: k8s.io/apimachinery/pkg/api/resource, Quantity, of v1.33 (format and canonical form).
 */

export type QuantityFormat = 'DecimalSI' | 'BinarySI' | 'DecimalExponent';

export interface Quantity {
  /** The amount in billionths of the unit. */
  readonly nano: bigint;
  readonly format: QuantityFormat;
}

const NANO = 1_000_000_000n;
const NANO_PER_MILLI = 1_000_000n;
const MAX_INT64 = 2n ** 63n - 1n;
/** Limits of a quantity's text: its length in characters, and its exponent. A huge exponent would exhaust the memory. */
const MAX_LENGTH = 256;
const MAX_EXPONENT = 128;

const decimalExponents: Readonly<Record<string, number>> = {
  n: -9,
  u: -6,
  m: -3,
  '': 0,
  k: 3,
  M: 6,
  G: 9,
  T: 12,
  P: 15,
  E: 18,
};
const decimalSuffixes: ReadonlyMap<number, string> = new Map(
  Object.entries(decimalExponents).map(([suffix, exponent]) => [exponent, suffix]),
);
const binarySuffixes = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'] as const;

const pattern = /^([+-]?)(\d*)(?:\.(\d*))?(?:([eE])([+-]?\d+)|(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|))$/;

export const zeroQuantity: Quantity = Object.freeze({ nano: 0n, format: 'DecimalSI' });

/** Rounds towards positive infinity. `divisor` must be positive. */
function divideUp(value: bigint, divisor: bigint): bigint {
  const quotient = value / divisor;
  return value > 0n && quotient * divisor !== value ? quotient + 1n : quotient;
}

/** Returns `digits` × 10^`exponent` in billionths, rounded up. `digits` must not be negative. */
function scaleToNano(digits: bigint, exponent: number): bigint {
  const shift = exponent + 9;
  return shift >= 0 ? digits * 10n ** BigInt(shift) : divideUp(digits, 10n ** BigInt(-shift));
}

/**
 * Returns undefined if the text is not a quantity, is longer than MAX_LENGTH, or has an exponent greater than MAX_EXPONENT. Like upstream,
 * caps the magnitude of amounts with a binary suffix at 2^63-1.
 */
export function parseQuantity(text: string): Quantity | undefined {
  if (text.length > MAX_LENGTH) return undefined;
  let quantity = parsed.get(text);
  if (quantity === undefined) {
    quantity = parse(text) ?? 'invalid';
    if (parsed.size >= MAX_PARSED) parsed.clear();
    // Store a copy: if `text` was cut from a longer string, V8 would keep the longer string in memory.
    parsed.set(Buffer.from(text).toString(), quantity);
  }
  return quantity === 'invalid' ? undefined : quantity;
}

/** Caches results, because one Pod's amounts are parsed several times, and most Pods use the same few texts. */
const parsed = new Map<string, Quantity | 'invalid'>();
const MAX_PARSED = 1000;

function parse(text: string): Quantity | undefined {
  if (text === '0') return zeroQuantity;
  const match = pattern.exec(text);
  if (match === null) return undefined;
  const [, sign, whole = '', fraction = '', e, exponentText, suffix = ''] = match;
  if (whole === '' && fraction === '') return undefined;
  const digits = BigInt(whole + fraction);

  let nano: bigint;
  let format: QuantityFormat;
  const power = (binarySuffixes as readonly string[]).indexOf(suffix);
  if (power > 0) {
    format = 'BinarySI';
    nano = scaleToNano(digits << BigInt(10 * power), -fraction.length);
    if (nano > MAX_INT64 * NANO) nano = MAX_INT64 * NANO;
  } else {
    format = e === undefined ? 'DecimalSI' : 'DecimalExponent';
    const exponent = e === undefined ? (decimalExponents[suffix] ?? 0) : Number(exponentText);
    if (exponent > MAX_EXPONENT) return undefined;
    nano =
      exponent < -MAX_EXPONENT - MAX_LENGTH
        ? digits === 0n
          ? 0n
          : 1n
        : scaleToNano(digits, exponent - fraction.length);
  }
  return { nano: sign === '-' ? -nano : nano, format };
}

export const quantityOrZero = (text: string | undefined): Quantity => parseQuantity(text ?? '0') ?? zeroQuantity;

/** Divides the amount by `base` as long as there is no remainder, at most `most` times. The amount must not be 0. */
function reduce(amount: bigint, base: bigint, most: number): { amount: bigint; times: number } {
  let times = 0;
  while (times < most && amount % base === 0n) {
    amount /= base;
    times += 1;
  }
  return { amount, times };
}

/**
 * Returns the canonical text: without a fraction, and with the largest suffix, or exponent divisible by 3, that keeps the value exact.
 * `1.5Gi` becomes `1536Mi`, `0.5` becomes `500m`. A BinarySI quantity whose magnitude is below 1024 or not an integer is formatted as
 * DecimalSI.
 */
export function formatQuantity({ nano, format }: Quantity): string {
  if (nano === 0n) return '0';
  const magnitude = nano < 0n ? -nano : nano;
  if (format === 'BinarySI' && magnitude >= 1024n * NANO && nano % NANO === 0n) {
    const { amount, times } = reduce(nano / NANO, 1024n, binarySuffixes.length - 1);
    return `${amount}${binarySuffixes[times]}`;
  }
  const { amount, times } = reduce(nano, 1000n, format === 'DecimalExponent' ? Number.POSITIVE_INFINITY : 9);
  const exponent = times * 3 - 9;
  if (format === 'DecimalExponent') return exponent === 0 ? `${amount}` : `${amount}e${exponent}`;
  return `${amount}${decimalSuffixes.get(exponent) ?? ''}`;
}

/** Common quantities that are already canonical. Ei is excluded, because 8Ei and more are capped. */
const plainPattern = /^[1-9]\d{0,2}(?:[numkMGTPE]|[KMGTP]i)?$/;

/** Returns the canonical text of a client's value, which may be a JSON number; undefined if the value is not a quantity. */
export function canonicalQuantity(value: string | number): string | undefined {
  if (typeof value === 'string' && plainPattern.test(value)) return value;
  const quantity = parseQuantity(typeof value === 'number' ? String(value) : value.trim());
  return quantity === undefined ? undefined : formatQuantity(quantity);
}

/** Rounds away from zero to thousandths of the unit, the smallest amounts in lists of resources. */
export function roundToMilli(quantity: Quantity): Quantity {
  const { nano, format } = quantity;
  if (nano % NANO_PER_MILLI === 0n) return quantity;
  const milli = nano < 0n ? -divideUp(-nano, NANO_PER_MILLI) : divideUp(nano, NANO_PER_MILLI);
  return { nano: milli * NANO_PER_MILLI, format };
}

/** Returns thousandths of the unit (millicores for cpu), rounded up. */
export const quantityMilli = (quantity: Quantity): bigint => divideUp(quantity.nano, NANO_PER_MILLI);

/** Returns whole units (bytes for memory), rounded up. */
export const quantityValue = (quantity: Quantity): bigint => divideUp(quantity.nano, NANO);

export const compareQuantities = (a: Quantity, b: Quantity): -1 | 0 | 1 =>
  a.nano < b.nano ? -1 : a.nano > b.nano ? 1 : 0;

/** The sum has the format of `a`, or of `b` if `a` is zero. */
export const addQuantities = (a: Quantity, b: Quantity): Quantity => ({
  nano: a.nano + b.nano,
  format: a.nano === 0n ? b.format : a.format,
});

/** Returns `a` - `b` in the format of `a`, or of `b` if `a` is zero. */
export const subtractQuantities = (a: Quantity, b: Quantity): Quantity => ({
  nano: a.nano - b.nano,
  format: a.nano === 0n ? b.format : a.format,
});

/** `factor` must be an integer. */
export const multiplyQuantity = (quantity: Quantity, factor: bigint | number): Quantity => ({
  nano: quantity.nano * BigInt(factor),
  format: quantity.format,
});

export const maxQuantity = (a: Quantity, b: Quantity): Quantity => (b.nano > a.nano ? b : a);
