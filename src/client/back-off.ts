/**
 * Returns the delay in milliseconds after consecutive failures (1, 2, …): `baseMillis`, doubled for each failure after the first, up to
 * `maxMillis`, and then shortened by a random part of up to one half.
 */
export function backOffMillis(failures: number, baseMillis: number, maxMillis: number): number {
  const whole = Math.min(maxMillis, baseMillis * 2 ** Math.min(failures - 1, 30));
  return whole * (1 - Math.random() / 2);
}
