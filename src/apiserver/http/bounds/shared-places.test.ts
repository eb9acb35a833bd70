import { expect, test } from 'vitest';
import type { UserInfo } from '../../../ports/request.ts';
import { isComponent, sharedPlaces } from './shared-places.ts';

const user = (name: string, ...groups: string[]): UserInfo => ({ name, groups: [...groups, 'system:authenticated'] });
const node = user('system:node:a', 'system:nodes');
const admin = user('admin', 'system:masters');

function takeAll(places: ReturnType<typeof sharedPlaces>, who: UserInfo): (() => void)[] {
  const taken: (() => void)[] = [];
  for (let free = places.take(who); free !== undefined; free = places.take(who)) taken.push(free);
  return taken;
}

test('a user alone gets half of the places for users, and each further user a part of those that are left', () => {
  const places = sharedPlaces(400);
  expect(['a', 'b', 'c'].map((name) => takeAll(places, user(name)).length)).toEqual([150, 75, 38]);
});

test('however many users there are, a quarter of the places is left for components, and administrators get the last ones', () => {
  const places = sharedPlaces(400);
  const names = Array.from({ length: 1000 }, (_, index) => `u${index}`);
  const taken = names.flatMap((name) => takeAll(places, user(name)));
  expect(taken).toHaveLength(300);
  expect(takeAll(places, node)).toHaveLength(50);
  expect(takeAll(places, admin)).toHaveLength(50);
  expect(places.take(node)).toBeUndefined();
  taken.pop()?.();
  expect(takeAll(places, admin)).toHaveLength(1);
});

test('a place is freed once, however often its function is called', () => {
  const places = sharedPlaces(4);
  const free = places.take(user('a'));
  expect(places.take(user('b'))).toBeDefined();
  free?.();
  free?.();
  expect(takeAll(places, user('c'))).toHaveLength(1);
});

test('a single place can be used by every user', () => {
  const places = sharedPlaces(1);
  for (const who of [user('a'), node, admin]) {
    const [free, ...more] = takeAll(places, who);
    expect(free).toBeDefined();
    expect(more).toEqual([]);
    free?.();
  }
});

test.each([
  [node, true],
  [user('system:kube-scheduler'), true],
  [user('system:serviceaccount:kube-system:job-controller', 'system:serviceaccounts:kube-system'), true],
  [user('system:serviceaccount:default:kube-system', 'system:serviceaccounts:default'), false],
  [user('system:node:a'), false],
  [user('kube-scheduler'), false],
])('the user %j is a component: %s', (who, expected) => {
  expect(isComponent(who)).toBe(expected);
});
