import { expect, test } from 'vitest';
import { concerns } from './monitor.ts';

test.each<[boolean, string]>([
  [true, 'delete rule inet lifepod-0 services/x handle 4'],
  [false, 'delete rule inet lifepod-00 services/x handle 4'],
  [false, 'delete rule ip filter lifepod-0 handle 4'],
  [false, 'add rule inet lifepod-0 services/x counter'],
  [false, '\t\t     delete rule inet lifepod-0 services/x handle 4'],
  [true, '# ERROR: We lost some netlink events!'],
])('whether a line concerns a table: %s for %s', (expected, line) => {
  expect(concerns(line, 'lifepod-0')).toBe(expected);
});
