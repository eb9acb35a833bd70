import { expect, test } from 'vitest';
import type { KubeObject } from '../../machinery/meta.ts';
import { countValues, decodeStored, giveContent, objectBytes, storedText, textAtRevision } from './stored-object.ts';

const metadata = { name: 'a', annotations: { text: '","metadata":{"name":"b"}' } };
const spec = { template: { metadata: { name: 'in the template' } } };

test.each<[string, object]>([
  ['apiVersion, kind and metadata', { apiVersion: 'v1', kind: 'Pod', metadata, spec }],
  ['kind, apiVersion and metadata', { kind: 'Pod', apiVersion: 'v1', metadata, spec }],
])('the text at a revision is made from the stored text of an object that begins with %s', (_, object) => {
  const text = textAtRevision(storedText(object as KubeObject), 7);
  expect(JSON.parse(text ?? '')).toEqual({ ...object, metadata: { ...metadata, resourceVersion: '7' } });
});

test.each<[string, object]>([
  ['whose metadata comes last', { apiVersion: 'v1', kind: 'Pod', spec, metadata }],
  ['that begins with the spec', { spec, apiVersion: 'v1', kind: 'Pod', metadata }],
  ['whose apiVersion contains a quote', { apiVersion: 'v"1', kind: 'Pod', metadata }],
])('no text is made for an object %s', (_, object) => {
  expect(textAtRevision(storedText(object as KubeObject), 7)).toBeUndefined();
});

test('the stored text has no resourceVersion', () => {
  const object = { apiVersion: 'v1', kind: 'Pod', metadata: { ...metadata, resourceVersion: '5' } };
  expect(JSON.parse(storedText(object))).toEqual({ ...object, metadata });
});

function given(object: object) {
  const value = Buffer.from(storedText(object as KubeObject));
  const values = giveContent(value, object as KubeObject);
  return { stored: { key: '/registry/core/pods/a/b', value, createRevision: 3, modRevision: 7 }, values };
}

test('the decoded value of a written object shares its content, and is the same as that of the JSON', () => {
  const object = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { ...metadata, resourceVersion: '5' },
    spec: { ...spec, list: [1, 0.5, true, null, '', '\ud800', { ['__proto__']: 1 }] },
  };
  const { stored, values } = given(object);
  const decoded = decodeStored(stored) as typeof object;
  const parsed = decodeStored({ ...stored, value: Buffer.from(stored.value) });
  expect(decoded).toStrictEqual(parsed);
  expect(decoded.spec).toBe(object.spec);
  expect(Object.isFrozen(decoded.metadata) && Object.isFrozen(object.spec.list)).toBe(true);
  expect(decoded.metadata.resourceVersion).toBe('7');
  expect(values).toBe(countValues(object));
  expect(objectBytes(decoded)).toBe(objectBytes(parsed));
});

test('each decoded value has the revision of its write', () => {
  const { stored } = given({ apiVersion: 'v1', kind: 'Pod', metadata, spec });
  const [first, second] = [decodeStored(stored), decodeStored({ ...stored, modRevision: 8 })];
  expect([first, second].map((object) => object.metadata.resourceVersion)).toEqual(['7', '8']);
});

test.each<[string, unknown]>([
  ['an absent value', undefined],
  ['a negative zero', -0],
  ['a number without JSON', Number.NaN],
  ['a date', new Date(0)],
  ['an object without a prototype', Object.create(null)],
  ['a list with holes', new Array(2)],
])('the JSON of an object with %s is parsed', (_, value) => {
  const object = { apiVersion: 'v1', kind: 'Pod', metadata, spec: { deep: [{ value }] } };
  const { stored, values } = given(object);
  const decoded = decodeStored(stored) as unknown as typeof object;
  expect(decoded.spec).toStrictEqual(JSON.parse(JSON.stringify(object.spec)));
  expect(Object.isFrozen(object.spec)).toBe(false);
  expect(values).toBe(countValues(object));
});
