/** Source: pkg/api/pod and pkg/api/persistentvolumeclaim of v1.33 (behavior and wording). */
import { parseQuantity, quantityMilli } from '../../../machinery/quantity.ts';

/** Warns about amounts of the named resources that are not whole bytes, such as `memory: 100m`, which is a tenth of a byte. */
export function fractionWarnings(
  texts: Record<string, string> | undefined,
  names: readonly string[],
  path: string,
): string[] {
  if (texts === undefined) return [];
  const warnings: string[] = [];
  for (const name of names) {
    const text = texts[name];
    if (text !== undefined && isFraction(text))
      warnings.push(`${path}[${name}]: fractional byte value ${JSON.stringify(text)} is invalid, must be an integer`);
  }
  return warnings;
}

/** Most amounts match. They are whole bytes, so they need not be parsed. */
const WHOLE = /^\d+(?:[KMGTPE]i|[kMGTPE])?$/;

function isFraction(text: string): boolean {
  const quantity = WHOLE.test(text) ? undefined : parseQuantity(text);
  return quantity !== undefined && quantityMilli(quantity) % 1000n !== 0n;
}
