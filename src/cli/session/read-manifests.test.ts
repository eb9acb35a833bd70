import { expect, test } from 'vitest';
import { checkPaths } from './read-manifests.ts';

test.each([
  [['-', import.meta.dirname, import.meta.filename], undefined],
  [[import.meta.filename, '/none/a.yaml'], 'the manifest /none/a.yaml does not exist'],
  [[`${import.meta.filename}/a.yaml`], `the manifest ${import.meta.filename}/a.yaml does not exist`],
])('checkPaths(%j) throws %j', (paths, message) => {
  const check = (): void => checkPaths(paths);
  if (message === undefined) expect(check).not.toThrow();
  else expect(check).toThrow(message);
});

test('checkPaths accepts a path whose other errors depend on the user, such as a permission', () => {
  expect(() => checkPaths([`/${'a'.repeat(300)}`])).not.toThrow();
});
