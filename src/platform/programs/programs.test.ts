import { expect, test } from 'vitest';
import { completePath, searchFolders } from './programs.ts';

const USUAL = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'];

test.each([
  { path: undefined, folders: USUAL },
  { path: '', folders: USUAL },
  {
    path: '/usr/local/bin:/usr/bin:/bin:/usr/games',
    folders: ['/usr/local/bin', '/usr/bin', '/bin', '/usr/games', '/usr/local/sbin', '/usr/sbin', '/sbin'],
  },
  { path: '/opt/own:', folders: ['/opt/own', ...USUAL] },
])('programs are searched in the folders of PATH=$path first, then in the usual ones', ({ path, folders }) => {
  expect(searchFolders(path)).toEqual(folders);
});

test('the usual folders become part of the PATH', () => {
  const env: NodeJS.ProcessEnv = { PATH: '/usr/bin:/bin' };
  completePath(env);
  expect(env['PATH']).toBe('/usr/bin:/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/sbin');
});
