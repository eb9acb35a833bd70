import { createDecipheriv, createHmac } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { aescbc, aesgcm, beginsWith, type Cipher, ENCRYPTED, identity, keyNameOf } from './ciphers.ts';

const KEY = '/registry/core/secrets/default/db';
const secret = (byte: number, length = 32): Buffer => Buffer.alloc(length, byte);
const bytes = (text: string): Uint8Array => Buffer.from(text);
const text = (value: Uint8Array): string => Buffer.from(value).toString();

const all: [name: string, cipher: Cipher][] = [
  ...[16, 24, 32].map((length): [string, Cipher] => [`aesgcm with ${length} bytes`, aesgcm('one', secret(1, length))]),
  ...[16, 24, 32].map((length): [string, Cipher] => [`aescbc with ${length} bytes`, aescbc('one', secret(1, length))]),
];

describe.each(all)('%s', (_, cipher) => {
  test('decrypts every value that it has encrypted, under the same key of the store', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 5000 }), fc.string(), (value, key) => {
        const stored = cipher.encrypt(key, value);
        expect(beginsWith(stored, ENCRYPTED)).toBe(true);
        expect(Buffer.from(cipher.decrypt(key, stored))).toEqual(Buffer.from(value));
      }),
    );
  });

  test('encrypts the same value differently each time, and shows nothing of it', () => {
    const value = bytes(JSON.stringify({ data: 'x'.repeat(500) }));
    const stored = [1, 2, 3].map(() => Buffer.from(cipher.encrypt(KEY, value)).subarray(cipher.prefix.length));
    expect(new Set(stored.map((each) => each.toString('hex'))).size).toBe(3);
    for (const each of stored) expect(each.includes('xxxx')).toBe(false);
  });

  test('rejects every truncated value', () => {
    const stored = cipher.encrypt(KEY, bytes('{"kind":"Secret"}'));
    for (let length = cipher.prefix.length; length < stored.length; length++) {
      expect(() => cipher.decrypt(KEY, stored.subarray(0, length))).toThrow(
        /^(the stored data was shorter than the required size|the stored data is not a multiple of the block size|cipher: message authentication failed|invalid padding on input)$/,
      );
    }
  });
});

describe('aesgcm', () => {
  const cipher = aesgcm('one', secret(1));

  test('rejects a value in which any bit after the prefix was changed', () => {
    const stored = cipher.encrypt(KEY, bytes('{"kind":"Secret"}'));
    for (let bit = cipher.prefix.length * 8; bit < stored.length * 8; bit++) {
      const changed = Buffer.from(stored);
      changed[bit >> 3] = (changed[bit >> 3] as number) ^ (1 << (bit & 7));
      expect(() => cipher.decrypt(KEY, changed)).toThrow('cipher: message authentication failed');
    }
  });

  test('rejects a value that was moved to another key of the store', () => {
    const stored = cipher.encrypt(KEY, bytes('{}'));
    expect(() => cipher.decrypt('/registry/core/secrets/default/other', stored)).toThrow(
      'cipher: message authentication failed',
    );
  });

  test('rejects a value that another secret with the same name has encrypted', () => {
    const stored = aesgcm('one', secret(2)).encrypt(KEY, bytes('{}'));
    expect(() => cipher.decrypt(KEY, stored)).toThrow('cipher: message authentication failed');
  });

  test('reads a value that an earlier version has written', () => {
    const stored = Buffer.from(
      'azhzOmVuYzphZXNnY206djI6b25lOvVhv/Kv9neyTjrtGkaRy6850f+epJdc3zMpnY04zUNM0PmxTOQL6kwpSsh1PMIABUgtOlZ6KsIVGn9i3j+g+FT5p+E=',
      'base64',
    );
    expect(text(cipher.decrypt(KEY, stored))).toBe('{"a":1}');
  });

  test('writes the documented layout: prefix, 32 random bytes, nonce, ciphertext, tag', () => {
    const stored = Buffer.from(cipher.encrypt(KEY, bytes('{"a":1}')));
    const head = 'k8s:enc:aesgcm:v2:one:';
    expect(stored.subarray(0, head.length).toString()).toBe(head);
    const [random, nonce, rest] = [
      stored.subarray(head.length, head.length + 32),
      stored.subarray(head.length + 32, head.length + 44),
      stored.subarray(head.length + 44),
    ];
    const key = createHmac('sha256', secret(1))
      .update('lifepod value ')
      .update(random)
      .update(Uint8Array.of(1))
      .digest();
    const decipher = createDecipheriv('aes-256-gcm', key, nonce);
    decipher.setAAD(Buffer.from(KEY));
    decipher.setAuthTag(rest.subarray(-16));
    expect(Buffer.concat([decipher.update(rest.subarray(0, -16)), decipher.final()]).toString()).toBe('{"a":1}');
  });
});

test('aescbc has the layout of upstream: prefix, IV, ciphertext with PKCS #7 padding', () => {
  const cipher = aescbc('one', secret(1));
  const stored = Buffer.from(cipher.encrypt(KEY, bytes('{"a":1}')));
  const head = 'k8s:enc:aescbc:v1:one:';
  expect(stored.subarray(0, head.length).toString()).toBe(head);
  expect(stored.length).toBe(head.length + 32);
  const decipher = createDecipheriv('aes-256-cbc', secret(1), stored.subarray(head.length, head.length + 16));
  expect(Buffer.concat([decipher.update(stored.subarray(head.length + 16)), decipher.final()]).toString()).toBe(
    '{"a":1}',
  );
});

test('identity stores the value itself', () => {
  expect(text(identity.decrypt(KEY, identity.encrypt(KEY, bytes('{}'))))).toBe('{}');
});

test('the name of a key depends on its secret, and does not contain it', () => {
  expect(keyNameOf(secret(1))).toMatch(/^key-[0-9a-f]{12}$/);
  expect(keyNameOf(secret(1))).toBe(keyNameOf(secret(1)));
  expect(keyNameOf(secret(1))).not.toBe(keyNameOf(secret(2)));
});
