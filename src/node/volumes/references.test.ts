import { expect, test } from 'vitest';
import { podOf } from '../../api/core/v1/pod/pod-fixtures.ts';
import type { Pod, Volume } from '../../api/generated/types.ts';
import { downwardItems, isInMemory, shownObjects, showsChange, showsObjects, showsPod } from './references.ts';

const item = (path: string, fieldPath: string) => ({ path, fieldRef: { fieldPath } });
const volumes: Record<string, Volume> = {
  configMap: { name: 'v', configMap: { name: 'settings' } },
  secret: { name: 'v', secret: { secretName: 'password' } },
  downwardAPI: { name: 'v', downwardAPI: { items: [item('labels', 'metadata.labels')] } },
  projected: {
    name: 'v',
    projected: {
      sources: [
        { configMap: { name: 'projected-settings' } },
        { secret: { name: 'projected-password' } },
        { downwardAPI: { items: [item('name', 'metadata.name')] } },
        { serviceAccountToken: { path: 'token' } },
      ],
    },
  },
  empty: { name: 'v', downwardAPI: {} },
  emptyDir: { name: 'v', emptyDir: {} },
};
const of = (name: string): Volume => volumes[name] as Volume;

test.each<[string, boolean, boolean, string[], string[]]>([
  ['configMap', true, false, ['configmaps/default/settings'], []],
  ['secret', true, true, ['secrets/default/password'], []],
  ['downwardAPI', true, false, [], ['labels']],
  ['projected', true, true, ['configmaps/default/projected-settings', 'secrets/default/projected-password'], ['name']],
  ['empty', true, false, [], []],
  ['emptyDir', false, false, [], []],
])('the objects, fields and storage of the volume "%s" are known', (name, shows, inMemory, objects, items) => {
  const volume = of(name);
  expect([showsObjects(volume), isInMemory(volume), showsPod(volume)]).toEqual([shows, inMemory, items.length > 0]);
  expect([...shownObjects(podOf({ volumes: [volume] }))]).toEqual(objects);
  expect(downwardItems(volume).map(({ path }) => path)).toEqual(items);
});

test('showsChange() is true only if a shown field differs between the two versions of the Pod', () => {
  const facts = { nodeName: 'n', hostIps: [], podIps: [], allocatable: {} };
  const podWith = (labels: Record<string, string>, annotations: Record<string, string>, ...shown: string[]): Pod => {
    const pod = podOf({ volumes: shown.map(of) });
    return { ...pod, metadata: { ...pod.metadata, labels, annotations } };
  };
  const changes = (after: Pod): boolean => showsChange(podWith({ a: '1' }, { a: '1' }), after, facts);
  expect(changes(podWith({ a: '1' }, { a: '2' }, 'downwardAPI', 'projected'))).toBe(false);
  expect(changes(podWith({ a: '2' }, { a: '1' }, 'downwardAPI', 'projected'))).toBe(true);
  expect(changes(podWith({ a: '2' }, { a: '1' }, 'projected', 'secret'))).toBe(false);
  const unsupported = podOf({
    volumes: [{ name: 'v', downwardAPI: { items: [item('x', 'spec.unknown')] } }, of('downwardAPI')],
  });
  expect(changes({ ...unsupported, metadata: { ...unsupported.metadata, labels: { a: '1' } } })).toBe(false);
  expect(changes(unsupported)).toBe(true);
});
