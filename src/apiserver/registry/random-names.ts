/** Vowels, and digits that look like vowels, are left out so that suffixes do not form words. Source: k8s.io/apimachinery/pkg/util/rand. */
const ALPHABET = 'bcdfghjklmnpqrstvwxz2456789';
const SUFFIX_CHARACTERS = 5;
/** A generated name has at most 63 characters, like a DNS label. Source: k8s.io/apiserver/pkg/storage/names. */
const MAX_BASE_CHARACTERS = 63 - SUFFIX_CHARACTERS;

export type RandomBytes = (size: number) => Uint8Array;

const BLOCK_BYTES = 4096;

/** Returns a source that takes its bytes from blocks of `source`, because each call of the system's generator is slow. */
export function inBlocks(source: RandomBytes): RandomBytes {
  let block: Uint8Array = new Uint8Array();
  let used = 0;
  return (size) => {
    if (used + size > block.length) {
      block = source(Math.max(size, BLOCK_BYTES));
      used = 0;
    }
    used += size;
    return block.subarray(used - size, used);
  };
}

/** For example, `x7k2p`. */
export function randomSuffix(randomBytes: RandomBytes): string {
  let suffix = '';
  for (const byte of randomBytes(SUFFIX_CHARACTERS)) suffix += ALPHABET[byte % ALPHABET.length];
  return suffix;
}

export const generatedName = (base: string, randomBytes: RandomBytes): string =>
  `${base.slice(0, MAX_BASE_CHARACTERS)}${randomSuffix(randomBytes)}`;

export function randomUid(randomBytes: RandomBytes): string {
  const bytes = Buffer.from(randomBytes(16));
  bytes[6] = ((bytes[6] as number) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] as number) & 0x3f) | 0x80;
  const hex = bytes.toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
