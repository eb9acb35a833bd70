/**
 * Parses an EncryptionConfiguration (apiserver.config.k8s.io/v1).
 * Source: k8s.io/apiserver/pkg/apis/apiserver and its validation in v1.33 (fields, rules and wording). In addition, the names of keys must
 * be unique for each provider in a list of providers, and must not contain a colon, so that the prefix of a value always identifies one
 * cipher.
 */
import { allErrors, type FieldError, invalid, required } from '../../machinery/field-error.ts';
import { UserError } from '../../platform/files.ts';
import { REGISTRY_PREFIX, resourcePrefix } from '../cache/keys.ts';
import { aescbc, aesgcm, type Cipher, identity, KEY_BYTES } from './ciphers.ts';
import { checkResources } from './resource-names.ts';
import { createTransformer, PLAIN, type Transformer } from './transformer.ts';

export interface Configuration {
  /** `key`: the key of the value in the store. */
  transformerFor(key: string): Transformer;
  /** Those of every resource. */
  transformers: readonly Transformer[];
  /** The key of each value that must be encrypted begins with one of these prefixes. */
  prefixes: readonly string[];
}

interface Key {
  name?: unknown;
  secret?: unknown;
}

interface Entry {
  resources?: unknown;
  providers?: unknown;
}

const API_VERSION = 'apiserver.config.k8s.io/v1';
const KIND = 'EncryptionConfiguration';
const CIPHERS: Readonly<Record<string, (name: string, secret: Uint8Array) => Cipher>> = { aesgcm, aescbc };
const UNSUPPORTED: readonly string[] = ['secretbox', 'kms'];

/** The text is YAML or JSON. Rejects with a UserError that names the file `path` if the text is invalid. */
export async function parseConfiguration(text: string, path: string): Promise<Configuration> {
  const wrong = (problem: string): UserError =>
    new UserError(`${path} is not a valid ${KIND}: ${problem}; correct the file, or restore it from a backup`);
  let content: unknown;
  try {
    content = text.trimStart().startsWith('{') ? JSON.parse(text) : (await import('yaml')).parse(text);
  } catch (error) {
    // The message of the error could quote a secret.
    throw wrong(`it is neither YAML nor JSON (${(error as Error).name})`);
  }
  if (!isMap(content)) throw wrong('it is empty, or not an object');
  const { apiVersion, kind, resources } = content;
  if (apiVersion !== API_VERSION || kind !== KIND) {
    throw wrong(`its apiVersion and kind must be ${API_VERSION} and ${KIND}`);
  }
  const errors: FieldError[] = unknownFields('', content, ['apiVersion', 'kind', 'resources']);
  const entries = listOf(resources);
  if (entries.length === 0) errors.push(required('resources', 'at least one resources is required'));
  const parsed = entries.map((entry, index) => parseEntry(entry, `resources[${index}]`, errors));
  const [first] = errors;
  if (first !== undefined) throw wrong(errors.map(({ field, body }) => `${field}: ${body}`).join('; '));
  return createConfiguration(parsed);
}

interface Group {
  /** Resources as RESOURCE, RESOURCE.GROUP, *.GROUP, *. for the core group, or *.* */
  resources: readonly string[];
  ciphers: readonly Cipher[];
}

/** `name`: such as `secrets` or `deployments.apps`. `*` means all. */
function groupResource(name: string): { resource: string; group: string } {
  const dot = name.indexOf('.');
  return dot < 0 ? { resource: name, group: '' } : { resource: name.slice(0, dot), group: name.slice(dot + 1) };
}

function prefixOfName(name: string): string {
  const { resource, group } = groupResource(name);
  if (group === '*') return REGISTRY_PREFIX;
  const prefix = resourcePrefix(group, resource);
  return resource === '*' ? prefix.slice(0, -'*/'.length) : prefix;
}

function createConfiguration(groups: readonly Group[]): Configuration {
  // As upstream, the first list that names the resource decides.
  const rules = groups.flatMap(({ resources, ciphers }) => {
    const transformer = createTransformer(ciphers);
    return resources.map((name) => ({ prefix: prefixOfName(name), transformer }));
  });
  const prefixes = rules
    .map(({ prefix }) => prefix)
    .filter(
      (prefix, index, all) => !all.some((other, at) => prefix.startsWith(other) && (other !== prefix || at < index)),
    );
  return {
    prefixes,
    transformers: rules.map(({ transformer }) => transformer),
    transformerFor: (key) => rules.find(({ prefix }) => key.startsWith(prefix))?.transformer ?? PLAIN,
  };
}

function parseEntry(entry: unknown, path: string, errors: FieldError[]): Group {
  const { resources, providers }: Entry = isMap(entry) ? entry : {};
  const names = listOf(resources).filter((name) => typeof name === 'string');
  errors.push(
    ...unknownFields(path, entry, ['resources', 'providers']),
    ...(names.length === 0 || names.length !== listOf(resources).length
      ? [required(`${path}.resources`, `at least one ${path}.resources is required`)]
      : checkResources(names, `${path}.resources`)),
  );
  const list = listOf(providers);
  if (list.length === 0) errors.push(required(`${path}.providers`, `at least one ${path}.providers is required`));
  const ciphers = list.flatMap((provider, index) => parseProvider(provider, `${path}.providers[${index}]`, errors));
  const prefixes = ciphers.map(({ prefix }) => prefix);
  for (const [index, prefix] of prefixes.entries()) {
    const name = prefix === '' ? 'identity' : prefix.split(':').at(-2);
    if (prefixes.indexOf(prefix) < index)
      errors.push(invalid(`${path}.providers`, name, 'the same provider and key cannot be specified multiple times'));
  }
  return { resources: names, ciphers };
}

function parseProvider(provider: unknown, path: string, errors: FieldError[]): Cipher[] {
  const names = isMap(provider) ? Object.keys(provider) : [];
  const [name = ''] = names;
  if (names.length > 1) {
    const text = 'more than one provider specified in a single element, should split into different list elements';
    errors.push(invalid(path, names, text));
    return [];
  }
  if (name === 'identity') return [identity];
  const create = CIPHERS[name];
  if (create === undefined) {
    const text = UNSUPPORTED.includes(name)
      ? `lifepod does not support the provider ${name}: use aesgcm or aescbc`
      : 'provider does not contain any of the expected providers: aesgcm, aescbc, identity';
    errors.push(invalid(path, name, text));
    return [];
  }
  const settings = (provider as Record<string, unknown>)[name];
  const at = `${path}.${name}.keys`;
  const keys = listOf(isMap(settings) ? settings['keys'] : undefined);
  errors.push(...unknownFields(`${path}.${name}`, settings, ['keys']));
  if (keys.length === 0) errors.push(required(at, 'at least one keys is required'));
  return keys.flatMap((key, index) => parseKey(key, `${at}[${index}]`, create, errors));
}

function parseKey(
  key: unknown,
  path: string,
  create: (name: string, secret: Uint8Array) => Cipher,
  errors: FieldError[],
): Cipher[] {
  const { name, secret }: Key = isMap(key) ? key : {};
  const found = allErrors(
    unknownFields(path, key, ['name', 'secret']),
    nameErrors(name, path),
    secretErrors(secret, path),
  );
  errors.push(...found);
  return found.length > 0 ? [] : [create(name as string, Buffer.from(secret as string, 'base64'))];
}

function nameErrors(name: unknown, path: string): FieldError[] {
  if (typeof name !== 'string' || name === '') return [required(`${path}.name`, 'name is a mandatory field for a key')];
  return /^[\x21-\x39\x3b-\x7e]+$/.test(name)
    ? []
    : [invalid(`${path}.name`, name, 'must consist of visible ASCII characters other than a colon')];
}

function secretErrors(secret: unknown, path: string): FieldError[] {
  const at = `${path}.secret`;
  if (typeof secret !== 'string' || secret === '') return [required(at, 'secret is a mandatory field for a key')];
  const bytes = Buffer.from(secret, 'base64');
  // Go ignores line breaks in base64.
  if (bytes.toString('base64') !== secret.replace(/[\r\n]/g, ''))
    return [invalid(at, 'REDACTED', 'secrets must be base64 encoded')];
  if (KEY_BYTES.includes(bytes.length)) return [];
  const text = `secret is not of the expected length, got ${bytes.length}, expected one of [${KEY_BYTES.join(' ')}]`;
  return [invalid(at, 'REDACTED', text)];
}

const isMap = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

const unknownFields = (path: string, value: unknown, known: readonly string[]): FieldError[] =>
  Object.keys(isMap(value) ? value : {})
    .filter((name) => !known.includes(name))
    .map((name) => invalid(path === '' ? name : `${path}.${name}`, name, 'unknown field'));
