import { expect, test } from 'vitest';
import type { KubeObject } from '../../machinery/meta.ts';
import { storedText, textAtRevision } from './stored-object.ts';

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
