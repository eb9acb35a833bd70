/**
 * Computes the hash of a template for names and labels. Source: ComputeHash of pkg/controller of v1.33 (purpose; the hash is not
 * upstream's).
 */
import { createHash } from 'node:crypto';
import type { PodTemplateSpec } from '../../api/generated/types.ts';

/** Without vowels, so that no words appear, and without digits that look like letters. */
const ALPHABET = 'bcdfghjklmnpqrstvwxz2456789';
const LENGTH = 10;

/** `collisions`: how many earlier hashes of this template led to a name that another object already had. */
export function templateHash(template: PodTemplateSpec | undefined, collisions: number): string {
  const digest = createHash('sha256')
    .update(JSON.stringify([sorted(template), collisions]))
    .digest();
  return [...digest.subarray(0, LENGTH)].map((byte) => ALPHABET[byte % ALPHABET.length]).join('');
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const fields = Object.entries(value).filter(([, field]) => field !== undefined);
  return Object.fromEntries(fields.sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, field]) => [name, sorted(field)]));
}
