import { expect, test } from 'vitest';
import { jsonFields, jsonForms, META, typeFacts, typeNames, typeOfKind } from './facts.ts';

const CORE = 'io.k8s.api.core.v1';

test('every type can be read, and every type that a field refers to has facts or a JSON form of its own', () => {
  expect(typeNames().length).toBeGreaterThan(1100);
  for (const name of typeNames()) {
    const type = typeFacts(name);
    for (const { ref, scalar, json } of [...(type?.fields ?? []), ...(type?.items === undefined ? [] : [type.items])]) {
      const known = ref === undefined ? scalar !== undefined : typeFacts(ref) !== undefined || jsonForms.has(ref);
      expect(known, `${name}.${json}`).toBe(true);
    }
  }
});

test('no type has a field number or a JSON name twice', () => {
  for (const name of typeNames()) {
    const fields = typeFacts(name)?.fields ?? [];
    const numbers = fields.map(({ number }) => number).filter((number) => number !== 0);
    expect(new Set(numbers).size, name).toBe(numbers.length);
    const names = fields.filter(({ inline }) => !inline).map(({ json }) => json);
    expect(new Set(names).size, name).toBe(names.length);
  }
});

test('the keys of lists and the merge keys of patches are fields of the elements', () => {
  // Upstream's markers name a key that the elements of this list do not have.
  const wrongUpstream = 'io.k8s.api.storagemigration.v1alpha1.StorageVersionMigrationList';
  for (const name of typeNames().filter((each) => each !== wrongUpstream)) {
    for (const { json, ref, mapKeys = [], mergeKey } of typeFacts(name)?.fields ?? []) {
      for (const key of mergeKey === undefined ? mapKeys : [...mapKeys, mergeKey])
        expect([...jsonFields(ref ?? '').keys()], `${name}.${json}`).toContain(key);
    }
  }
});

test('typeFacts returns undefined for an unknown type, and for names of members of every object', () => {
  expect(typeFacts(`${CORE}.NoSuchType`)).toBeUndefined();
  expect(typeFacts(`${CORE}.toString`)).toBeUndefined();
  expect(typeFacts('io.k8s.api.core.v7.Pod')).toBeUndefined();
  expect(() => jsonFields('Pod')).toThrow('no facts about the type Pod');
});

test('a field has its number, type, markers and strategies', () => {
  const field = (type: string, name: string) => jsonFields(`${CORE}.${type}`).get(name);
  expect(field('PodSpec', 'containers')).toMatchObject({
    number: 2,
    container: 'list',
    ref: `${CORE}.Container`,
    omitempty: false,
    required: true,
    listType: 'map',
    mapKeys: ['name'],
    patchStrategy: 'merge',
    mergeKey: 'name',
  });
  expect(field('PodSpec', 'terminationGracePeriodSeconds')).toMatchObject({ scalar: 'int64', pointer: true });
  expect(field('PodSpec', 'nodeSelector')).toMatchObject({ container: 'map', scalar: 'string', atomic: true });
  expect(field('PodStatus', 'phase')).toMatchObject({ scalar: 'string', goName: 'v1.PodPhase' });
  expect(field('ContainerPort', 'protocol')).toMatchObject({ default: 'TCP' });
  expect(typeFacts(`${META}.LabelSelector`)?.atomic).toBe(true);
});

test('the JSON fields of a type include those of its embedded structs, which a field of the type itself hides', () => {
  expect([...jsonFields(`${CORE}.EphemeralContainer`).keys()]).toEqual(
    expect.arrayContaining(['name', 'image', 'targetContainerName']),
  );
  expect(jsonFields(`${CORE}.DeferContainer`).get('lifecycle')).toMatchObject({ number: 0, unlisted: true });
  expect(jsonFields(`${CORE}.Container`).get('lifecycle')).toMatchObject({ number: 12, unlisted: false });
});

test('types of Kubernetes have the fields that lifepod adds, and a kind has its type', () => {
  expect(jsonFields(`${CORE}.PodSpec`).get('deferContainers')).toMatchObject({ ref: `${CORE}.DeferContainer` });
  expect(typeOfKind('', 'v1', 'Pod')).toBe(`${CORE}.Pod`);
  expect(typeOfKind('lifepod.io', 'v1', 'PodRecord')).toBe('io.lifepod.v1.PodRecord');
  expect(typeOfKind('policy', 'v1', 'DeleteOptions')).toBe(`${META}.DeleteOptions`);
  expect(typeOfKind('', 'v1', 'NoSuchKind')).toBeUndefined();
});
