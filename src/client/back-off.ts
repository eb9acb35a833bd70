/** Doubles from `baseMillis` with each failure (1, 2, …) up to `maxMillis`, minus a random part of up to one half. */
export function backOffMillis(failures: number, baseMillis: number, maxMillis: number): number {
  const whole = Math.min(maxMillis, baseMillis * 2 ** Math.min(failures - 1, 30));
  return whole * (1 - Math.random() / 2);
}
