import { expect, it } from 'vitest';
import { containerOf, podOf } from '../../api/core/v1/pod/pod-fixtures.ts';
import { containersByName, volumesByName } from './by-name.ts';

it('lookups by name iterate over the containers and volumes of a Pod only once', () => {
  let looks = 0;
  const counted = <T>(list: T[]): T[] =>
    new Proxy(list, {
      get: (all, key) => {
        looks += 1;
        return Reflect.get(all, key);
      },
    });
  const names = Array.from({ length: 200 }, (_, index) => `x${index}`);
  const pod = podOf({
    containers: counted(names.map((name) => containerOf(name))),
    volumes: counted(names.map((name) => ({ name, emptyDir: {} }))),
  });
  const named = names.map((name) => [containersByName(pod).get(name)?.name, volumesByName(pod).get(name)?.name]);
  expect(named).toEqual(names.map((name) => [name, name]));
  expect(looks).toBeLessThan(names.length * 2 * 5);
});
