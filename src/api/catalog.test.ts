import { expect, it } from 'vitest';
import { anyKind, createCatalog } from './catalog.ts';
import { configMapKind } from './core/v1/config-map/index.ts';
import type { KindDefinition } from './kind.ts';

const widget = (changes: Partial<KindDefinition> = {}): KindDefinition => ({
  ...anyKind(configMapKind),
  group: 'example.com',
  kind: 'Widget',
  plural: 'widgets',
  ...changes,
});
const WIDGETS = { group: 'example.com', version: 'v1', resource: 'widgets' };
const later = (changes: Partial<KindDefinition> = {}): KindDefinition =>
  widget({
    version: 'v1beta1',
    storage: { resource: WIDGETS, toStored: (object) => object, fromStored: (object) => object },
    ...changes,
  });

it('a kind is found by path and name from its addition to its removal, and views follow', () => {
  const catalog = createCatalog([]);
  let built = 0;
  const names = catalog.view((kinds) => {
    built++;
    return kinds.map(({ kind }) => kind);
  });
  const removed: string[] = [];
  const stop = catalog.onRemove(({ kind }) => removed.push(kind));
  const additions: string[][] = [];
  const stopAdditions = catalog.onAdd(() => additions.push(names()));
  const added = widget();
  catalog.add(added);
  expect(additions).toEqual([['Widget']]);
  stopAdditions();
  expect([catalog.find(WIDGETS), catalog.named('example.com', 'v1', 'Widget')]).toEqual([added, added]);
  expect([names(), names(), built]).toEqual([['Widget'], ['Widget'], 1]);
  catalog.remove(added);
  catalog.remove(added);
  expect([catalog.find(WIDGETS), catalog.named('example.com', 'v1', 'Widget')]).toEqual([undefined, undefined]);
  expect([names(), built, removed]).toEqual([[], 2, ['Widget']]);
  stop();
  catalog.add(added);
  catalog.remove(added);
  expect([removed.length, additions.length]).toEqual([1, 1]);
});

it('a version that is stored as another one is served with it, and the other one cannot be removed first', () => {
  const stored = widget();
  const other = later();
  const catalog = createCatalog([stored, other]);
  expect([catalog.storedAs(stored), catalog.storedAs(other)]).toEqual([stored, stored]);
  expect(() => catalog.remove(stored)).toThrow('no kind stores example.com/v1/widgets');
  expect(catalog.find(WIDGETS)).toBe(stored);
  catalog.remove(other);
  catalog.remove(stored);
  expect(catalog.kinds).toEqual([]);
});

it.each<[string, KindDefinition, string]>([
  ['has the path of another kind', widget({ kind: 'Gadget' }), 'two kinds have the path example.com/v1/widgets'],
  ['has the name of another kind', widget({ plural: 'gadgets' }), 'two kinds have the name example.com/v1/Widget'],
  [
    'is stored as a kind that is not served',
    later({ storage: { ...later().storage, resource: { ...WIDGETS, version: 'v2' } } as KindDefinition['storage'] }),
    'example.com/v1beta1/Widget: no kind stores example.com/v2/widgets',
  ],
  [
    'is uncached',
    widget({ plural: 'gadgets', kind: 'Gadget', uncached: true }),
    'an uncached kind cannot be added later',
  ],
])('a kind that %s is not added', (_, refused, message) => {
  const stored = widget();
  const catalog = createCatalog([stored]);
  expect(() => catalog.add(widget({ plural: 'others', kind: 'Other' }), refused)).toThrow(message);
  expect(catalog.kinds).toEqual([stored]);
});
