import { describe, expect, it } from 'vitest';
import { fieldErrorText } from './field-error.ts';
import type { ObjectMeta } from './meta.ts';
import { dns1123SubdomainErrors } from './names.ts';
import { validateObjectMeta, validateObjectMetaUpdate } from './object-meta.ts';

const good: ObjectMeta = { name: 'a', namespace: 'default', resourceVersion: '1' };
const texts = (meta: Partial<ObjectMeta>, namespaced = true): string[] =>
  validateObjectMeta({ ...good, ...meta }, { namespaced, nameErrors: dns1123SubdomainErrors }).map(fieldErrorText);
const owner = { apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'u' };

describe('validateObjectMeta', () => {
  it('validateObjectMeta() accepts valid metadata', () => {
    expect(
      texts({ labels: { a: 'b' }, annotations: { 'Upper.io/X': 'any text\n' }, ownerReferences: [owner] }),
    ).toEqual([]);
  });
  it.each<[string, Partial<ObjectMeta>, RegExp[]]>([
    ['no name', { name: '' }, [/^metadata.name: Required value: name or generateName is required$/]],
    [
      'an invalid name',
      { name: 'A' },
      [/^metadata.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of/],
    ],
    [
      'an invalid generateName',
      { generateName: 'AB-' },
      [/^metadata.generateName: Invalid value: "AB-": a lowercase RFC 1123 subdomain/],
    ],
    ['no namespace', { namespace: '' }, [/^metadata.namespace: Required value$/]],
    [
      'an invalid namespace',
      { namespace: 'a.b' },
      [/^metadata.namespace: Invalid value: "a.b": must not contain dots$/],
    ],
    [
      'an invalid label',
      { labels: { '-': '-' } },
      [
        /^metadata.labels: Invalid value: "-": name part must/,
        /^metadata.labels: Invalid value: "-": a valid label must/,
      ],
    ],
    [
      'an invalid annotation',
      { annotations: { '-': '' } },
      [/^metadata.annotations: Invalid value: "-": name part must/],
    ],
    [
      'annotations of more than 256 KiB',
      { annotations: { a: 'x'.repeat(256 * 1024) } },
      [/^metadata.annotations: Too long: may not be more than 262144 bytes$/],
    ],
    [
      'a negative generation',
      { generation: -1 },
      [/^metadata.generation: Invalid value: -1: must be greater than or equal to 0$/],
    ],
    ['an invalid finalizer', { finalizers: ['a b'] }, [/^metadata.finalizers: Invalid value: "a b": name part must/]],
    ['contradictory finalizers', { finalizers: ['orphan', 'foregroundDeletion'] }, [/cannot be both set$/]],
    [
      'an empty owner reference',
      { ownerReferences: [{ ...owner, apiVersion: '', kind: '', name: '', uid: '' }] },
      [
        /apiVersion: Invalid value: "": version must/,
        /kind: Invalid value: "": kind must/,
        /name must not be empty$/,
        /uid must not be empty$/,
      ],
    ],
    [
      'owner references whose apiVersions cannot be parsed',
      {
        ownerReferences: [
          { ...owner, apiVersion: 'a/b/c' },
          { ...owner, apiVersion: 'apps/' },
        ],
      },
      [/Invalid value: "a\/b\/c": version must not be empty$/, /Invalid value: "apps\/": version must not be empty$/],
    ],
    [
      'two controllers',
      {
        ownerReferences: [
          { ...owner, controller: true },
          { ...owner, controller: true },
        ],
      },
      [/Only one reference can have Controller set to true. Found "true" in references for Pod\/p and Pod\/p$/],
    ],
    [
      'an Event as owner',
      { ownerReferences: [{ ...owner, kind: 'Event' }] },
      [/\/v1, Kind=Event is disallowed from being an owner$/],
    ],
  ])('validateObjectMeta() reports %s', (_, meta, expected) => {
    const actual = texts(meta);
    expect(actual).toHaveLength(expected.length);
    expected.forEach((pattern, index) => {
      expect(actual[index]).toMatch(pattern);
    });
  });
  it('validateObjectMeta() rejects a namespace of a cluster-scoped kind', () => {
    expect(texts({}, false)).toEqual(['metadata.namespace: Forbidden: not allowed on this type']);
  });
});

describe('validateObjectMetaUpdate', () => {
  const update = (meta: Partial<ObjectMeta>, old: Partial<ObjectMeta> = {}): string[] =>
    validateObjectMetaUpdate({ ...good, ...meta }, { ...good, ...old }).map(fieldErrorText);
  it.each<[Partial<ObjectMeta>, Partial<ObjectMeta>, string[]]>([
    [{ labels: { a: 'b' } }, {}, []],
    [{ name: 'b' }, {}, ['metadata.name: Invalid value: "b": field is immutable']],
    [{ uid: 'b' }, { uid: 'a' }, ['metadata.uid: Invalid value: "b": field is immutable']],
    [
      { deletionTimestamp: '2026-01-01T00:00:00Z' },
      {},
      ['metadata.deletionTimestamp: Invalid value: "2026-01-01T00:00:00Z": field is immutable'],
    ],
    [{ resourceVersion: '' }, {}, ['metadata.resourceVersion: Invalid value: "": must be specified for an update']],
    [{ generation: 1 }, { generation: 2 }, ['metadata.generation: Invalid value: 1: must not be decremented']],
    [{ finalizers: ['x/a'] }, {}, []],
    [
      { finalizers: ['x/b', 'x/a'], deletionTimestamp: 't' },
      { finalizers: ['x/a'], deletionTimestamp: 't' },
      [
        'metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"x/b"}',
      ],
    ],
    [{ deletionTimestamp: 't' }, { finalizers: ['x/a'], deletionTimestamp: 't' }, []],
  ])('an update to %j of metadata with %j is validated', (meta, old, expected) => {
    expect(update(meta, old)).toEqual(expected);
  });
});
