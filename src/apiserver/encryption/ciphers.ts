/**
 * A cipher is a provider with one key. As upstream, an encrypted value begins with `k8s:enc:PROVIDER:VERSION:NAME:`, in which NAME is the
 * name of the key.
 *
 * aesgcm: AES-256-GCM. Upstream's version v1 encrypts all values with the same key and random nonces of 96 bits, so that the key must be
 * replaced after 200,000 writes. lifepod's version v2 derives a key for each write with HKDF-Expand from the given key and 256 random bits,
 * as upstream does for KMS v2, so that the number of writes needs no limit. The layout after the prefix is: 32 random bytes, nonce (12
 * bytes), ciphertext, tag (16 bytes). The key of the value in the store is authenticated, so that the value cannot be moved to another key.
 *
 * aescbc: AES-CBC with PKCS #7 padding and upstream's layout: IV (16 bytes), ciphertext. This provider authenticates nothing.
 *
 * identity: the value itself, which must not begin with `k8s:enc:`.
 */
import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  type KeyObject,
  randomBytes,
} from 'node:crypto';

export interface Cipher {
  /** The beginning of all values that this cipher has encrypted; '' for identity. */
  prefix: string;
  /** Returns the encrypted value, with the prefix. `key`: the key of the value in the store. */
  encrypt(key: string, value: Uint8Array): Uint8Array;
  /** Throws an error with upstream's text if the value is damaged or, with aesgcm, belongs to another key of the store. */
  decrypt(key: string, value: Uint8Array): Uint8Array;
}

/** No JSON text begins with this text. */
export const ENCRYPTED = 'k8s:enc:';

export const KEY_BYTES: readonly number[] = [16, 24, 32];

const RANDOM_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const BLOCK_BYTES = 16;
/** Different labels make the keys for values independent of the names of keys. */
const DATA_KEY_LABEL = 'lifepod value ';
const KEY_NAME_LABEL = 'lifepod key name';
const FIRST_BLOCK = Uint8Array.of(1);
const NOTHING = new Uint8Array();

/**
 * HKDF-Expand with SHA-256, whose first block of 32 bytes is enough. HKDF-Extract is not needed, because the secret is random. Source: RFC
 * 5869, 2.3 and 3.3.
 */
const derive = (secret: KeyObject, label: string, info: Uint8Array = NOTHING): Buffer =>
  createHmac('sha256', secret).update(label).update(info).update(FIRST_BLOCK).digest();

export function beginsWith(value: Uint8Array, prefix: string): boolean {
  for (let at = 0; at < prefix.length; at++) if (value[at] !== prefix.charCodeAt(at)) return false;
  return true;
}

/** The name is derived from the secret, so that keys with different secrets have different names. */
export const keyNameOf = (secret: Uint8Array): string =>
  `key-${derive(createSecretKey(secret), KEY_NAME_LABEL).toString('hex').slice(0, 12)}`;

export const AESGCM_PREFIX = `${ENCRYPTED}aesgcm:v2:`;
export const AESCBC_PREFIX = `${ENCRYPTED}aescbc:v1:`;

const TOO_SHORT = 'the stored data was shorter than the required size';

export function aesgcm(name: string, secret: Uint8Array): Cipher {
  const prefix = `${AESGCM_PREFIX}${name}:`;
  const head = Buffer.from(prefix);
  const nonceAt = prefix.length + RANDOM_BYTES;
  const textAt = nonceAt + NONCE_BYTES;
  const master = createSecretKey(secret);
  // With a KeyObject, Node.js creates a cipher in half the time that it takes with the bytes of a key.
  const keyFor = (random: Uint8Array): KeyObject => createSecretKey(derive(master, DATA_KEY_LABEL, random));
  return {
    prefix,
    encrypt(key, value) {
      const random = randomBytes(RANDOM_BYTES + NONCE_BYTES);
      const cipher = createCipheriv(
        'aes-256-gcm',
        keyFor(random.subarray(0, RANDOM_BYTES)),
        random.subarray(RANDOM_BYTES),
      );
      cipher.setAAD(Buffer.from(key));
      return Buffer.concat([head, random, cipher.update(value), cipher.final(), cipher.getAuthTag()]);
    },
    decrypt(key, value) {
      if (value.length < textAt + TAG_BYTES) throw new Error(TOO_SHORT);
      const tagAt = value.length - TAG_BYTES;
      const random = value.subarray(prefix.length, nonceAt);
      const nonce = value.subarray(nonceAt, textAt);
      const decipher = createDecipheriv('aes-256-gcm', keyFor(random), nonce, { authTagLength: TAG_BYTES });
      decipher.setAAD(Buffer.from(key));
      decipher.setAuthTag(value.subarray(tagAt));
      const plain = decipher.update(value.subarray(textAt, tagAt));
      try {
        decipher.final();
      } catch {
        throw new Error('cipher: message authentication failed');
      }
      return plain;
    },
  };
}

export function aescbc(name: string, secret: Uint8Array): Cipher {
  const prefix = `${AESCBC_PREFIX}${name}:`;
  const head = Buffer.from(prefix);
  const textAt = prefix.length + BLOCK_BYTES;
  const algorithm = `aes-${8 * secret.length}-cbc`;
  const master = createSecretKey(secret);
  return {
    prefix,
    encrypt(_, value) {
      const iv = randomBytes(BLOCK_BYTES);
      const cipher = createCipheriv(algorithm, master, iv);
      return Buffer.concat([head, iv, cipher.update(value), cipher.final()]);
    },
    decrypt(_, value) {
      if (value.length < textAt) throw new Error(TOO_SHORT);
      if ((value.length - textAt) % BLOCK_BYTES !== 0) {
        throw new Error('the stored data is not a multiple of the block size');
      }
      const decipher = createDecipheriv(algorithm, master, value.subarray(prefix.length, textAt));
      const plain = decipher.update(value.subarray(textAt));
      try {
        return Buffer.concat([plain, decipher.final()]);
      } catch {
        throw new Error('invalid padding on input');
      }
    },
  };
}

export const identity: Cipher = {
  prefix: '',
  encrypt: (_, value) => value,
  decrypt: (_, value) => value,
};
