import { expect, test } from 'vitest';
import { objectBytes } from '../../cache/stored-object.ts';
import { configMap } from '../../registry/testing.ts';
import { createHeldObjects } from './held-objects.ts';

const large = (name: string) => configMap(name, { text: 'x'.repeat(10_000) });
const BYTES = objectBytes(large('a'));

test('a held object counts once from when the cache drops it until the last response releases it', () => {
  const held = createHeldObjects();
  const object = large('a');
  const [first, second] = [held.open(() => {}), held.open(() => {})];
  first.hold(object);
  first.hold(object);
  second.hold(object);
  expect(held.bytes()).toBeLessThan(1000);
  held.dropped(object);
  expect(held.bytes()).toBeGreaterThanOrEqual(BYTES);
  expect(held.bytes()).toBeLessThan(BYTES + 1000);
  first.release(object);
  expect(held.bytes()).toBeGreaterThanOrEqual(BYTES);
  second.close();
  expect(held.bytes()).toBe(0);
});

test('an object that the cache drops before a response holds it counts too', () => {
  const held = createHeldObjects();
  const object = large('a');
  held.dropped(object);
  expect(held.bytes()).toBe(0);
  held.open(() => {}).hold(object);
  expect(held.bytes()).toBeGreaterThanOrEqual(BYTES);
});

test('if the budget is exceeded, the response that holds the most bytes is cut', () => {
  const held = createHeldObjects(3 * BYTES);
  const cut: string[] = [];
  const [few, many] = ['few', 'many'].map((name) => held.open(() => cut.push(name)));
  const objects = ['a', 'b', 'c', 'd'].map(large);
  few?.hold(objects[0] as (typeof objects)[0]);
  for (const object of objects) many?.hold(object);
  for (const object of objects) held.dropped(object);
  expect(cut).toEqual(['many']);
  expect(held.bytes()).toBeLessThan(2 * BYTES);
  expect(held.bytes()).toBeGreaterThanOrEqual(BYTES);
});

test('a response that has ended cannot hold another object', () => {
  const held = createHeldObjects();
  const ended = held.open(() => {});
  ended.close();
  const object = large('a');
  ended.hold(object);
  held.dropped(object);
  expect(held.bytes()).toBe(0);
});
