/** Formats amounts of resources for people. Pure. */
import { formatQuantity, type Quantity } from '../../machinery/quantity.ts';

const UNITS = ['Ki', 'Mi', 'Gi', 'Ti', 'Pi'];
/** An exact amount with at most this many characters is not rounded. */
const SHORT_CHARS = 6;

/** Returns the exact amount, but rounds a long amount that has a binary unit: `24581692Ki` becomes `23.4Gi`. */
export function amountText(quantity: Quantity): string {
  const exact = formatQuantity(quantity);
  if (quantity.format !== 'BinarySI' || exact.length <= SHORT_CHARS) return exact;
  let amount = Number(quantity.nano) / 1e9;
  let unit = '';
  for (const next of UNITS) {
    if (amount < 1024) break;
    amount /= 1024;
    unit = next;
  }
  return `${amount.toFixed(1)}${unit}`;
}
