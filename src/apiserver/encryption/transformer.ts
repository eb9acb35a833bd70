/**
 * The first cipher of a list encrypts, and the prefix of a stored value determines the cipher that decrypts it.
 * Source: PrefixTransformer of k8s.io/apiserver/pkg/storage/value in v1.33 (behavior and wording).
 */
import { AESCBC_PREFIX, AESGCM_PREFIX, beginsWith, type Cipher, ENCRYPTED, identity } from './ciphers.ts';

export interface Transformer {
  toStorage(key: string, value: Uint8Array): Uint8Array;
  /** Throws an error with upstream's text if no cipher of the list can decrypt the value. */
  fromStorage(key: string, value: Uint8Array): Uint8Array;
  /** Whether the first cipher of the list has not written the value. Also true if no cipher of the list can decrypt the value. */
  isStale(value: Uint8Array): boolean;
}

/** The ciphers must have different prefixes. */
export function createTransformer(ciphers: readonly Cipher[]): Transformer {
  const [first = identity] = ciphers;
  const writerOf = (value: Uint8Array): Cipher | undefined =>
    beginsWith(value, ENCRYPTED)
      ? ciphers.find(({ prefix }) => prefix !== '' && beginsWith(value, prefix))
      : ciphers.find(({ prefix }) => prefix === '');
  return {
    toStorage: (key, value) => first.encrypt(key, value),
    fromStorage(key, value) {
      const cipher = writerOf(value);
      if (cipher === undefined) throw new Error(reasonFor(ciphers, value));
      return cipher.decrypt(key, value);
    },
    isStale: (value) => writerOf(value) !== first,
  };
}

function reasonFor(ciphers: readonly Cipher[], value: Uint8Array): string {
  for (const [name, prefix] of [
    ['AES-GCM', AESGCM_PREFIX],
    ['AES-CBC', AESCBC_PREFIX],
  ] as const) {
    if (beginsWith(value, prefix) && ciphers.some((cipher) => cipher.prefix.startsWith(prefix)))
      return `no matching key was found for the provided ${name} transformer`;
  }
  const onlyPlain = ciphers.every(({ prefix }) => prefix === '');
  return onlyPlain ? 'identity transformer tried to read encrypted data' : 'no matching prefix found';
}

export const PLAIN = createTransformer([identity]);
