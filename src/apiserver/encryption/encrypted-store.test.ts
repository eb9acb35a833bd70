import { describe, expect, test } from 'vitest';
import { createMemoryStore } from '../../store/memory/memory-store.ts';
import type { Store } from '../../store/store.ts';
import { failure, object, ref, type Started, startRegistry } from '../registry/testing.ts';
import { aesgcm } from './ciphers.ts';
import { encryptedStore } from './encrypted-store.ts';
import { createTransformer, PLAIN, type Transformer } from './transformer.ts';

const SECRETS = ref('secrets');
const PREFIX = '/registry/core/secrets/';
const cipher = createTransformer([aesgcm('one', Buffer.alloc(32, 1))]);
const forSecrets = (transformer: Transformer) => (key: string) => (key.startsWith(PREFIX) ? transformer : PLAIN);

function counting(): Transformer & { calls: { encrypted: number; decrypted: number } } {
  const calls = { encrypted: 0, decrypted: 0 };
  return {
    ...cipher,
    calls,
    toStorage(key, value) {
      calls.encrypted++;
      return cipher.toStorage(key, value);
    },
    fromStorage(key, value) {
      calls.decrypted++;
      return cipher.fromStorage(key, value);
    },
  };
}

const secret = (name: string, value = 'x') =>
  object('Secret', name, { data: { value: Buffer.from(value).toString('base64') } });

async function damage(raw: Store, key: string): Promise<void> {
  const value = Buffer.from((await raw.get(key))?.value ?? []);
  value[value.length - 1] = (value.at(-1) as number) ^ 1;
  await raw.txn({ compare: [], puts: [{ key, value }] });
}

async function started(transformer: Transformer = cipher) {
  const raw = createMemoryStore();
  const { registry, settled } = await startRegistry({ store: encryptedStore(raw, forSecrets(transformer)) });
  return { raw, registry, settled };
}

test('the store has no Secret in plain text, and the registry returns it', async () => {
  const { raw, registry } = await started();
  await registry.create(SECRETS, 'default', secret('a', 'hidden'));
  const stored = Buffer.from((await raw.get(`${PREFIX}default/a`))?.value ?? []).toString('latin1');
  expect(stored).toMatch(/^k8s:enc:aesgcm:v2:one:/);
  expect(stored).not.toContain('Secret');
  expect(await registry.get(SECRETS, 'default', 'a')).toMatchObject({ data: { value: 'aGlkZGVu' } });
});

test('each version of a Secret is encrypted once, and decrypted only by the next start, once, however often it is read', async () => {
  const transformer = counting();
  const { raw, registry, settled } = await started(transformer);
  for (const name of ['a', 'b', 'c']) await registry.create(SECRETS, 'default', secret(name));
  await registry.update(SECRETS, { ...secret('a', 'y'), metadata: { name: 'a', namespace: 'default' } });
  await registry.delete(SECRETS, 'default', 'b');
  await settled();
  const read = async ({ registry: from }: Pick<Started, 'registry'>): Promise<void> => {
    for (let reads = 0; reads < 5; reads++) {
      await from.list(SECRETS, {});
      await from.get(SECRETS, 'default', 'a');
      const { metadata } = await from.list(SECRETS, { limit: 1 });
      await from.list(SECRETS, { limit: 1, continue: metadata.continue ?? '' });
    }
  };
  await read({ registry });
  expect(transformer.calls).toEqual({ encrypted: 4, decrypted: 0 });
  await read(await startRegistry({ store: encryptedStore(raw, forSecrets(transformer)) }));
  expect(transformer.calls).toEqual({ encrypted: 4, decrypted: 2 });
});

describe('a value that cannot be decrypted', () => {
  const message = `Internal error occurred: unable to transform key "${PREFIX}default/a": cipher: message authentication failed`;

  async function withDamaged() {
    const all = await started();
    for (const name of ['a', 'b']) await all.registry.create(SECRETS, 'default', secret(name));
    const other = { ...secret('c'), metadata: { name: 'c', namespace: 'kube-system' } };
    await all.registry.create(SECRETS, 'kube-system', other);
    await damage(all.raw, `${PREFIX}default/a`);
    await all.settled();
    return all;
  }

  test('reads of an object that cannot be decrypted, and lists that contain it, fail with 500, as upstream', async () => {
    const { registry } = await withDamaged();
    const expected = { code: 500, reason: 'InternalError', message };
    expect(await failure(registry.get(SECRETS, 'default', 'a'))).toEqual(expected);
    expect(await failure(registry.list(SECRETS, {}))).toEqual(expected);
    expect(await failure(registry.list(SECRETS, { namespace: 'default' }))).toEqual(expected);
    expect(await failure(registry.delete(SECRETS, 'default', 'a'))).toEqual(expected);
  });

  test('a value that cannot be decrypted does not affect other objects and other namespaces', async () => {
    const { registry } = await withDamaged();
    expect(await registry.get(SECRETS, 'default', 'b')).toMatchObject({ metadata: { name: 'b' } });
    expect((await registry.list(SECRETS, { namespace: 'kube-system' })).items).toHaveLength(1);
    expect((await registry.list(ref('configmaps'), {})).items).toBeDefined();
  });

  test('a value that could not be decrypted can be read again after it was restored, and is forgotten after it was deleted', async () => {
    const { raw, registry, settled } = await withDamaged();
    const key = `${PREFIX}default/a`;
    await damage(raw, key);
    await settled();
    expect(await registry.get(SECRETS, 'default', 'a')).toMatchObject({ metadata: { name: 'a' } });
    await damage(raw, key);
    await raw.txn({ compare: [], deletes: [key] });
    await settled();
    expect((await registry.list(SECRETS, {})).items.map(({ metadata }) => metadata.name)).toEqual(['b', 'c']);
  });

  test('a value that cannot be decrypted prevents the start of a registry', async () => {
    const { raw } = await withDamaged();
    const start = startRegistry({ store: encryptedStore(raw, forSecrets(cipher)) });
    expect(await failure(start)).toMatchObject({ code: 500, message });
  });

  test('a value that was moved from another object cannot be decrypted', async () => {
    const { raw, registry, settled } = await started();
    for (const name of ['a', 'b']) await registry.create(SECRETS, 'default', secret(name));
    const value = (await raw.get(`${PREFIX}default/b`))?.value ?? new Uint8Array();
    await raw.txn({ compare: [], puts: [{ key: `${PREFIX}default/a`, value }] });
    await settled();
    expect(await failure(registry.get(SECRETS, 'default', 'a'))).toMatchObject({ code: 500, message });
  });

  test('a value that was replaced by bytes that are not JSON cannot be read, and the error does not contain the bytes', async () => {
    const { raw, registry, settled } = await started();
    const key = `${PREFIX}default/a`;
    await raw.txn({ compare: [], puts: [{ key, value: cipher.toStorage(key, Buffer.from('hidden')) }] });
    await settled();
    expect((await failure(registry.get(SECRETS, 'default', 'a'))).message).toBe(
      `Internal error occurred: unable to transform key "${key}": the value is not JSON`,
    );
  });

  test('a value that was replaced by a plain object cannot be read', async () => {
    const { raw, registry, settled } = await started();
    await registry.create(SECRETS, 'default', secret('a'));
    const value = Buffer.from(JSON.stringify(secret('a')));
    await raw.txn({ compare: [], puts: [{ key: `${PREFIX}default/a`, value }] });
    await settled();
    expect((await failure(registry.get(SECRETS, 'default', 'a'))).message).toContain('no matching prefix found');
  });
});
