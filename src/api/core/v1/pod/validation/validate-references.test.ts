import { describe, expect, it } from 'vitest';
import { fieldErrorText } from '../../../../../machinery/field-error.ts';
import type { ResourceFieldSelector } from '../../../../generated/types.ts';
import { validateFieldRef, validateKeyRef, validateResourceFieldRef, volumeFieldPaths } from './validate-references.ts';

const beginning = (texts: readonly string[]) => texts.map((text) => expect.stringContaining(text));
const QUALIFIED = "name part must consist of alphanumeric characters, '-', '_' or '.'";
const UNKNOWN = 'error converting fieldPath: field label not supported';

describe('a reference to a field of the Pod', () => {
  it.each<[string, ...string[]]>([
    ['metadata.name'],
    ["metadata.annotations['Example.com/A']"],
    ["metadata.labels['a']"],
    ["metadata.annotations['a b']", `ref: Invalid value: "a b": ${QUALIFIED}`],
    ["metadata.labels['a b']", `ref: Invalid value: "a b": ${QUALIFIED}`],
    [
      "metadata.labels['']",
      'ref: Invalid value: "": name part must be non-empty',
      `ref: Invalid value: "": ${QUALIFIED}`,
    ],
    [
      "metadata.name['a']",
      "ref.fieldPath: Invalid value: \"metadata.name['a']\": error converting fieldPath: field label does not support subscript: metadata.name['a']",
    ],
    ["metadata.labels[']", `ref.fieldPath: Invalid value: "metadata.labels[']": ${UNKNOWN}: metadata.labels[']`],
    ["metadata.labels['a", `ref.fieldPath: Invalid value: "metadata.labels['a": ${UNKNOWN}: metadata.labels['a`],
    ['', 'ref.fieldPath: Required value'],
    ['spec.none', `ref.fieldPath: Invalid value: "spec.none": ${UNKNOWN}: spec.none`],
    ['status.podIP', 'ref.fieldPath: Unsupported value: "status.podIP": supported values: "metadata.annotations"'],
    ['spec.host', 'ref.fieldPath: Unsupported value: "spec.nodeName": supported values: "metadata.annotations"'],
  ])('the errors in the reference to the field %j are reported', (fieldPath, ...errors) => {
    const found = validateFieldRef({ apiVersion: 'v1', fieldPath }, 'ref', volumeFieldPaths).map(fieldErrorText);
    expect(found).toEqual(beginning(errors));
  });
  it.each([
    ['', 'ref.apiVersion: Required value'],
    ['v2', 'ref.fieldPath: Invalid value: "metadata.name": error converting fieldPath: unsupported pod version: v2'],
  ])('the reference with the API version %j is invalid', (apiVersion, error) => {
    const reference = { apiVersion, fieldPath: 'metadata.name' };
    expect(validateFieldRef(reference, 'ref', volumeFieldPaths).map(fieldErrorText)).toEqual([error]);
  });
});

describe('a reference to a resource', () => {
  const SHOWN = '1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei';
  it.each<[ResourceFieldSelector, ...string[]]>([
    [{ resource: 'limits.cpu' }],
    [{ resource: 'limits.cpu', divisor: '0' }],
    [{ resource: 'requests.cpu', divisor: '1m' }],
    [{ resource: 'limits.memory', divisor: '1Mi' }],
    [{ resource: 'limits.hugepages-2Mi', divisor: '1Gi' }],
    [{ resource: '' }, 'ref.resource: Required value'],
    [
      { resource: 'limits.none', divisor: '5' },
      'ref.resource: Unsupported value: "limits.none": supported values: "limits.cpu"',
    ],
    [{ resource: 'other.hugepages-2Mi' }, 'ref.resource: Unsupported value: "other.hugepages-2Mi"'],
    [
      { resource: 'limits.cpu', divisor: '1k' },
      `ref.divisor: Invalid value: "limits.cpu": only divisor's values 1m and 1 are supported with the cpu resource`,
    ],
    [
      { resource: 'requests.memory', divisor: '1m' },
      `ref.divisor: Invalid value: "requests.memory": only divisor's values ${SHOWN} are supported with the memory resource`,
    ],
    [
      { resource: 'limits.ephemeral-storage', divisor: '2' },
      `ref.divisor: Invalid value: "limits.ephemeral-storage": only divisor's values ${SHOWN} are supported with the local ephemeral storage resource`,
    ],
    [
      { resource: 'requests.hugepages-2Mi', divisor: 'x' },
      `ref.divisor: Invalid value: "requests.hugepages-2Mi": only divisor's values ${SHOWN} are supported with the hugepages resource`,
    ],
  ])('the errors in the reference %j are reported', (reference, ...errors) => {
    expect(validateResourceFieldRef(reference, 'ref', false).map(fieldErrorText)).toEqual(beginning(errors));
  });
  it('a reference in a volume must name a container', () => {
    const reference = { resource: 'limits.cpu' };
    expect(validateResourceFieldRef(reference, 'ref', true).map(fieldErrorText)).toEqual([
      'ref.containerName: Required value',
    ]);
    expect(validateResourceFieldRef({ ...reference, containerName: 'app' }, 'ref', true)).toEqual([]);
  });
});

it('a reference to a key must have a valid name and a valid key', () => {
  expect(validateKeyRef({ name: 'a', key: 'k' }, 'ref')).toEqual([]);
  expect(validateKeyRef({ name: 'A', key: 'a b' }, 'ref').map(fieldErrorText)).toEqual(
    beginning([
      'ref.name: Invalid value: "A": a lowercase RFC 1123 subdomain',
      'ref.key: Invalid value: "a b": a valid config key',
    ]),
  );
});
