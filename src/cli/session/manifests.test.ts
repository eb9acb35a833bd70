import { expect, test } from 'vitest';
import { parseManifests } from './manifests.ts';

const namesIn = (text: string): (string | undefined)[] =>
  parseManifests(text, 'f.yaml').map(({ object }) => object.metadata.name ?? object.metadata.generateName);
const config = (name: string): object => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } });

test.each([
  ['a YAML document', 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}', ['a']],
  [
    'YAML documents, some of them empty',
    '---\n# only a comment\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\n',
    ['a'],
  ],
  ['a JSON document', JSON.stringify(config('a')), ['a']],
  [
    'concatenated JSON documents',
    `${JSON.stringify(config('a}"{'))}${JSON.stringify(config('b'), undefined, 2)}\n`,
    ['a}"{', 'b'],
  ],
  ['a List', JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [config('a'), config('b')] }), ['a', 'b']],
  [
    'a typed list whose items have no kind',
    JSON.stringify({ apiVersion: 'v1', kind: 'PodList', items: [{ metadata: { name: 'a' } }] }),
    ['a'],
  ],
  ['a name that the server chooses', 'apiVersion: v1\nkind: Pod\nmetadata: {generateName: a-}', ['a-']],
  ['an empty file', '', []],
  ['JSON with comments, which is YAML', '{apiVersion: v1, kind: Pod, metadata: {name: a}} # comment', ['a']],
])('%s is read', (_, text, names) => {
  expect(namesIn(text)).toEqual(names);
});

test('scalars have the types that kubectl gives them', () => {
  const text =
    'apiVersion: v1\nkind: X\nmetadata: {name: a}\nvalues: [0644, yes, off, 12:30, 2020-01-31, "0644", 1e3, ~]';
  const values = parseManifests(text, 'f.yaml').map(({ object }) => (object as unknown as { values: unknown }).values);
  expect(values.flat()).toEqual([420, true, false, '12:30', '2020-01-31', '0644', 1000, null]);
});

test.each([
  ['text', 'hello', 'f.yaml is not a Kubernetes object: it must have the fields apiVersion, kind and metadata'],
  ['a list', '- a', 'f.yaml is not a Kubernetes object: it must have the fields apiVersion, kind and metadata'],
  ['no kind', 'apiVersion: v1', 'f.yaml: the field kind is missing'],
  ['no name', 'apiVersion: v1\nkind: Pod', 'f.yaml: Pod has no name: set metadata.name or metadata.generateName'],
  [
    'a kustomization',
    'apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [pod.yaml]',
    'f.yaml is a kustomization, which lifepod does not build: pipe its objects into lifepod, as in kubectl kustomize . | lifepod up -',
  ],
  [
    'a wrong item',
    '{"apiVersion":"v1","kind":"List","items":[1]}',
    'f.yaml, item 1 is not a Kubernetes object: it must have the fields apiVersion, kind and metadata',
  ],
  [
    'a wrong second document',
    'apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\nkind: Pod',
    'f.yaml, document 2: the field apiVersion is missing',
  ],
  [
    'a name that YAML reads as a number',
    'apiVersion: v1\nkind: Pod\nmetadata: {name: 123}',
    'f.yaml: metadata.name of the Pod is read as the number 123, not as a string: put it in quotes',
  ],
  [
    'a name that YAML 1.1 reads as a boolean',
    'apiVersion: v1\nkind: Pod\nmetadata: {name: yes}',
    'f.yaml: metadata.name of the Pod is read as the boolean true, not as a string: put it in quotes',
  ],
  [
    'a name that is 0',
    'apiVersion: v1\nkind: Pod\nmetadata: {name: 0}',
    'f.yaml: metadata.name of the Pod is read as the number 0, not as a string: put it in quotes',
  ],
  [
    'a name that is a list',
    'apiVersion: v1\nkind: Pod\nmetadata: {name: [a]}',
    'f.yaml: metadata.name of the Pod is a list, not a string',
  ],
  [
    'a prefix of a name that is not a string',
    'apiVersion: v1\nkind: Pod\nmetadata: {generateName: 12}',
    'f.yaml: metadata.generateName of the Pod is read as the number 12, not as a string: put it in quotes',
  ],
  [
    'a namespace that is not a string',
    'apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: 1}',
    'f.yaml: metadata.namespace of the Pod is read as the number 1, not as a string: put it in quotes',
  ],
  [
    'an apiVersion that is not a string',
    'apiVersion: 1\nkind: Pod\nmetadata: {name: a}',
    'f.yaml: apiVersion is read as the number 1, not as a string: put it in quotes',
  ],
  [
    'a kind that is not a string',
    'apiVersion: v1\nkind: off\nmetadata: {name: a}',
    'f.yaml: kind is read as the boolean false, not as a string: put it in quotes',
  ],
  [
    'metadata that are not an object',
    'apiVersion: v1\nkind: Pod\nmetadata: a',
    'f.yaml: metadata of the Pod is not an object: give it fields, such as name',
  ],
])('%s is refused with its place', (_, text, message) => {
  expect(() => parseManifests(text, 'f.yaml')).toThrow(message);
});

test.each([
  ['a: [1,\n b: {', /^f\.yaml is not valid YAML at line 2, column \d+: /],
  ['a: 1\na: 2', /^f\.yaml is not valid YAML at line 2, column 1: Map keys must be unique/],
  ['{"a": 1,}{', /^f\.yaml is not valid YAML at line 1, column \d+: /],
])('invalid YAML is refused with its line: %j', (text, message) => {
  expect(() => parseManifests(text, 'f.yaml')).toThrow(message);
});

test('text that is not a manifest is reported as such', () => {
  const text = '# Title\n\nSome text: and more\nof it\n';
  expect(() => parseManifests(`${text}apiVersion: v1`, 'README.md')).toThrow(
    /^README\.md is not valid YAML at line 4, column 1: .*; its name does not end in .*, so it may not be a manifest: give a file with /,
  );
  for (const name of ['f.yml', 'F.YAML', 'standard input'])
    expect(() => parseManifests(text, name)).toThrow(
      /; it has no field apiVersion, so it may not be a manifest: give /,
    );
  expect(() => parseManifests('apiVersion: v1\na: 1\na: 2', 'f.yaml')).toThrow(/: Map keys must be unique$/);
});

test.each([
  ['{\n "a": 1 "b": 2}', "f.json is not valid JSON at line 2, column 9: Expected ',' or '}' after property value"],
  ['{"a": 1}\n{"b": x}', /^f\.json is not valid JSON at line 2, column \d+: /],
  ['a: [', /^f\.json is not valid JSON at line 1, column \d+: /],
])('an error in a file whose name ends in .json is one of JSON: %j', (text, message) => {
  expect(() => parseManifests(text, 'f.json')).toThrow(message);
});

test('the errors of all documents and items are reported, a line for each', () => {
  const text = 'kind: Pod\n---\na: 1\na: 2\n---\napiVersion: v1\nkind: List\nitems: [1, {apiVersion: v1}]\n';
  const object = 'is not a Kubernetes object: it must have the fields apiVersion, kind and metadata';
  expect(() => parseManifests(text, 'f.yaml')).toThrow(
    [
      'f.yaml, document 1: the field apiVersion is missing',
      'f.yaml is not valid YAML at line 4, column 1: Map keys must be unique',
      `f.yaml, document 3, item 1 ${object}`,
      'f.yaml, document 3, item 2: the field kind is missing',
    ].join('\n'),
  );
});

test.each([
  'apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: a}',
  'apiVersion: v1\nkind: Pod\nmetadata: {name: a}',
])('an object in a file kustomization.yaml is not taken for a kustomization: %j', (text) => {
  expect(parseManifests(text, 'kustomization.yaml')).toHaveLength(1);
});

test('a kustomization is found in a file with several documents', () => {
  const text = 'resources: [pod.yaml]\n---\nkind: Pod\n---\napiVersion: v1\nkind: List\nitems: [{kind: Pod}]';
  expect(() => parseManifests(text, 'kustomization.yaml')).toThrow(
    /^kustomization.yaml, document 1 is a kustomization, .*\nkustomization.yaml, document 2: the field apiVersion is missing\nkustomization.yaml, document 3, item 1: the field apiVersion is missing$/,
  );
});

test.each(['resources: [pod.yaml]', 'kind: Component', 'apiVersion:\nkind: Kustomization'])(
  'a kustomization may lack the apiVersion: %j',
  (text) => {
    expect(() => parseManifests(text, 'my app/kustomization.yaml')).toThrow(
      "my app/kustomization.yaml is a kustomization, which lifepod does not build: pipe its objects into lifepod, as in kubectl kustomize 'my app' | lifepod up -",
    );
  },
);
