import { describe, expect, test } from 'vitest';
import { UserError } from '../../platform/files.ts';
import { parseConfiguration } from './configuration.ts';
import { PLAIN } from './transformer.ts';

const SECRET = Buffer.alloc(32, 7).toString('base64');
const key = (name = 'one', secret = SECRET) => ({ name, secret });
const gcm = (...keys: object[]) => ({ aesgcm: { keys } });
const configuration = (...resources: object[]) =>
  JSON.stringify({ apiVersion: 'apiserver.config.k8s.io/v1', kind: 'EncryptionConfiguration', resources });
const withProviders = (...providers: object[]) => configuration({ resources: ['secrets'], providers });
const forNames = (...resources: string[]) => configuration({ resources, providers: [gcm(key())] });

const writtenFor = async (text: string, storeKey: string): Promise<string> => {
  const { transformerFor } = await parseConfiguration(text, 'FILE');
  return Buffer.from(transformerFor(storeKey).toStorage(storeKey, Buffer.from('{}'))).toString('latin1');
};

test('the example of upstream in YAML is read', async () => {
  const text = `
apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
  - resources: [secrets, configmaps, pandas.awesome.bears.example]
    providers:
      - aescbc:
          keys:
            - {name: key1, secret: ${SECRET}}
            - {name: key2, secret: ${Buffer.alloc(16).toString('base64')}}
      - identity: {}
`;
  expect(await writtenFor(text, '/registry/core/secrets/a/b')).toMatch(/^k8s:enc:aescbc:v1:key1:/);
  expect(await writtenFor(text, '/registry/awesome.bears.example/pandas/a/b')).toMatch(/^k8s:enc:aescbc:v1:key1:/);
  expect(await writtenFor(text, '/registry/core/pods/a/b')).toBe('{}');
});

describe('the names of resources', () => {
  test.each([
    ['secrets', '/registry/core/secrets/a/b', true],
    ['secrets', '/registry/core/secretsother/a/b', false],
    ['secrets', '/registry/example.com/secrets/a/b', false],
    ['deployments.apps', '/registry/apps/deployments/a/b', true],
    ['deployments.apps', '/registry/core/deployments/a/b', false],
    ['*.apps', '/registry/apps/replicasets/a/b', true],
    ['*.apps', '/registry/core/pods/a/b', false],
    ['*.', '/registry/core/pods/a/b', true],
    ['*.', '/registry/apps/deployments/a/b', false],
    ['*.*', '/registry/example.com/widgets/a', true],
  ])('%s and %s: %s', async (name, storeKey, isEncrypted) => {
    const { transformerFor, prefixes } = await parseConfiguration(forNames(name), 'FILE');
    expect(transformerFor(storeKey) !== PLAIN).toBe(isEncrypted);
    expect(prefixes.some((prefix) => storeKey.startsWith(prefix))).toBe(isEncrypted);
  });

  test('the first list that names a resource decides', async () => {
    const text = configuration(
      { resources: ['events'], providers: [{ identity: {} }] },
      { resources: ['*.'], providers: [gcm(key())] },
    );
    expect(await writtenFor(text, '/registry/core/events/a/b')).toBe('{}');
    expect(await writtenFor(text, '/registry/core/secrets/a/b')).toMatch(/^k8s:enc:aesgcm:/);
    expect((await parseConfiguration(text, 'FILE')).prefixes).toEqual(['/registry/core/']);
  });
});

describe('an invalid configuration is refused with a sentence that names the file and the field', () => {
  test.each<[what: string, text: string, message: string]>([
    ['neither YAML nor JSON', '{', 'it is neither YAML nor JSON (SyntaxError)'],
    ['an empty file', '', 'it is empty, or not an object'],
    [
      'another kind',
      '{"kind":"Secret"}',
      'its apiVersion and kind must be apiserver.config.k8s.io/v1 and EncryptionConfiguration',
    ],
    ['no resources', configuration(), 'resources: Required value: at least one resources is required'],
    [
      'no names',
      configuration({ providers: [{ identity: {} }] }),
      'resources[0].resources: Required value: at least one resources[0].resources is required',
    ],
    [
      'no providers',
      withProviders(),
      'resources[0].providers: Required value: at least one resources[0].providers is required',
    ],
    [
      'an unknown field',
      withProviders({ aesgcm: { keys: [key()], size: 1 } }),
      'resources[0].providers[0].aesgcm.size: Invalid value: "size": unknown field',
    ],
    [
      'two providers in an element',
      withProviders({ identity: {}, ...gcm(key()) }),
      'resources[0].providers[0]: Invalid value: ["identity","aesgcm"]: more than one provider specified in a single element, should split into different list elements',
    ],
    [
      'an empty element',
      withProviders({}),
      'resources[0].providers[0]: Invalid value: "": provider does not contain any of the expected providers: aesgcm, aescbc, identity',
    ],
    [
      'secretbox',
      withProviders({ secretbox: { keys: [key()] } }),
      'resources[0].providers[0]: Invalid value: "secretbox": lifepod does not support the provider secretbox: use aesgcm or aescbc',
    ],
    [
      'kms',
      withProviders({ kms: {} }),
      'resources[0].providers[0]: Invalid value: "kms": lifepod does not support the provider kms: use aesgcm or aescbc',
    ],
    [
      'no keys',
      withProviders(gcm()),
      'resources[0].providers[0].aesgcm.keys: Required value: at least one keys is required',
    ],
    [
      'a key without a name',
      withProviders(gcm({ secret: SECRET })),
      'resources[0].providers[0].aesgcm.keys[0].name: Required value: name is a mandatory field for a key',
    ],
    [
      'a colon in a name',
      withProviders(gcm(key('a:b'))),
      'resources[0].providers[0].aesgcm.keys[0].name: Invalid value: "a:b": must consist of visible ASCII characters other than a colon',
    ],
    [
      'a key without a secret',
      withProviders(gcm({ name: 'one' })),
      'resources[0].providers[0].aesgcm.keys[0].secret: Required value: secret is a mandatory field for a key',
    ],
    [
      'a secret that is not base64',
      withProviders(gcm(key('one', 'no base64!'))),
      'resources[0].providers[0].aesgcm.keys[0].secret: Invalid value: "REDACTED": secrets must be base64 encoded',
    ],
    [
      'a short secret',
      withProviders(gcm(key('one', 'c2hvcnQ='))),
      'resources[0].providers[0].aesgcm.keys[0].secret: Invalid value: "REDACTED": secret is not of the expected length, got 5, expected one of [16 24 32]',
    ],
    [
      'a key twice',
      withProviders(gcm(key()), gcm(key('one', Buffer.alloc(16).toString('base64')))),
      'resources[0].providers: Invalid value: "one": the same provider and key cannot be specified multiple times',
    ],
    [
      'identity twice',
      withProviders({ identity: {} }, { identity: {} }),
      'resources[0].providers: Invalid value: "identity": the same provider and key cannot be specified multiple times',
    ],
    [
      'a name twice',
      forNames('secrets', 'secrets'),
      'resources[0].resources: Invalid value: ["secrets","secrets"]: the same resource cannot be specified multiple times',
    ],
    [
      'overlapping names',
      forNames('secrets', '*.'),
      'resources[0].resources: Invalid value: ["secrets","*."]: using overlapping resources such as \'secrets\' and \'*.\' in the same resource list is not allowed as they will be masked',
    ],
    [
      'capital letters',
      forNames('Secrets'),
      'resources[0].resources[0]: Invalid value: "Secrets": resource name should not contain capital letters',
    ],
    [
      'an asterisk',
      forNames('*'),
      'resources[0].resources[0]: Invalid value: "*": use \'*.\' to encrypt all the resources from core API group or *.* to encrypt all resources',
    ],
    [
      'a resource in all groups',
      forNames('secrets.*'),
      'resources[0].resources[0]: Invalid value: "secrets.*": encrypting the same resource across groups is not supported',
    ],
    [
      'the group events.k8s.io',
      forNames('events.events.k8s.io'),
      "resources[0].resources[0]: Invalid value: \"events.events.k8s.io\": '*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use 'events' instead in the config file",
    ],
    [
      'the group extensions',
      forNames('ingresses.extensions'),
      'resources[0].resources[0]: Invalid value: "ingresses.extensions": \'extensions\' group has been removed and cannot be used for encryption',
    ],
    [
      'a resource without an API',
      forNames('apiserveripinfo'),
      'resources[0].resources[0]: Invalid value: "apiserveripinfo": resources which do not have REST API/s cannot be encrypted',
    ],
  ])('%s', async (_, text, message) => {
    const error = await parseConfiguration(text, 'FILE').catch((caught: unknown) => caught as Error);
    expect(error).toBeInstanceOf(UserError);
    expect((error as Error).message).toBe(
      `FILE is not a valid EncryptionConfiguration: ${message}; correct the file, or restore it from a backup`,
    );
  });

  test('no message contains a secret', async () => {
    const secret = Buffer.alloc(31, 9).toString('base64');
    for (const text of [withProviders(gcm(key('a:b', secret))), `{"secret":"${secret}"`, `a: "${secret}\nb: [`]) {
      await expect(parseConfiguration(text, 'FILE')).rejects.toThrow(
        expect.objectContaining({ message: expect.not.stringContaining(secret) }),
      );
    }
  });
});
