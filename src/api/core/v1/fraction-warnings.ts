/** Warnings about amounts that are not whole bytes. Source: pkg/api/pod and pkg/api/persistentvolumeclaim of v1.33 (behavior and wording). */
import { parseQuantity, quantityMilli } from '../../../machinery/quantity.ts';

/** Warns about amounts of the named resources that are not whole bytes, such as `memory: 100m`, which is a tenth of a byte. */
export function fractionWarnings(
  texts: Record<string, string> | undefined,
  names: readonly string[],
  path: string,
): string[] {
  if (texts === undefined) return [];
  return names.flatMap((name) => {
    const text = texts[name];
    const quantity = text === undefined ? undefined : parseQuantity(text);
    return quantity === undefined || quantityMilli(quantity) % 1000n === 0n
      ? []
      : [`${path}[${name}]: fractional byte value ${JSON.stringify(text)} is invalid, must be an integer`];
  });
}
