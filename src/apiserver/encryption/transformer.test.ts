import { expect, test } from 'vitest';
import { aescbc, aesgcm, identity } from './ciphers.ts';
import { createTransformer, PLAIN } from './transformer.ts';

const KEY = '/registry/core/secrets/default/db';
const gcm = (name: string) => aesgcm(name, Buffer.alloc(32, name));
const cbc = aescbc('c', Buffer.alloc(32, 3));
const plain = Buffer.from('{"kind":"Secret"}');

test('the first cipher encrypts, and each one decrypts what it has written', () => {
  const ciphers = [gcm('a'), gcm('b'), cbc, identity];
  const transformer = createTransformer(ciphers);
  expect(transformer.isStale(transformer.toStorage(KEY, plain))).toBe(false);
  for (const [index, cipher] of ciphers.entries()) {
    const stored = cipher.encrypt(KEY, plain);
    expect(Buffer.from(transformer.fromStorage(KEY, stored))).toEqual(plain);
    expect(transformer.isStale(stored)).toBe(index > 0);
  }
});

test('identity in the first place stores plain values, and the others still decrypt', () => {
  const transformer = createTransformer([identity, gcm('a')]);
  expect(transformer.toStorage(KEY, plain)).toEqual(plain);
  const stored = gcm('a').encrypt(KEY, plain);
  expect(Buffer.from(transformer.fromStorage(KEY, stored))).toEqual(plain);
  expect([transformer.isStale(plain), transformer.isStale(stored)]).toEqual([false, true]);
});

test.each([
  ['a plain value without identity', [gcm('a')], plain, 'no matching prefix found'],
  [
    'a value of a key that is not in the list',
    [gcm('a'), cbc],
    gcm('b').encrypt(KEY, plain),
    'no matching key was found for the provided AES-GCM transformer',
  ],
  [
    'a value of a CBC key that is not in the list',
    [cbc],
    aescbc('d', Buffer.alloc(16)).encrypt(KEY, plain),
    'no matching key was found for the provided AES-CBC transformer',
  ],
  [
    'a value of a provider that is not in the list',
    [cbc, identity],
    gcm('a').encrypt(KEY, plain),
    'no matching prefix found',
  ],
  ['a value of an unknown provider', [gcm('a')], Buffer.from('k8s:enc:kms:v2:x:y'), 'no matching prefix found'],
])('%s cannot be read', (_, ciphers, stored, message) => {
  const transformer = createTransformer(ciphers);
  expect(() => transformer.fromStorage(KEY, stored)).toThrow(message);
  expect(transformer.isStale(stored)).toBe(true);
});

test('an encrypted value of a resource that is not encrypted cannot be read', () => {
  expect(() => PLAIN.fromStorage(KEY, gcm('a').encrypt(KEY, plain))).toThrow(
    'identity transformer tried to read encrypted data',
  );
  expect(PLAIN.fromStorage(KEY, plain)).toBe(plain);
});
