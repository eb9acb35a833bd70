import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readNodeResolver } from './node-resolver.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'lifepod-resolver-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const write = (name: string, text: string): string => {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
};

test.each<[string, string, string | undefined, string[]]>([
  [
    "the machine's servers if one of them is not on loopback",
    'nameserver 10.0.0.2\nnameserver 127.0.0.1\n',
    'nameserver 9.9.9.9\n',
    ['10.0.0.2', '127.0.0.1'],
  ],
  ['the servers behind a stub on loopback', 'nameserver 127.0.0.53\n', 'nameserver 9.9.9.9\n', ['9.9.9.9']],
  ['the stub if the servers behind it are unknown', 'nameserver 127.0.0.53\n', undefined, ['127.0.0.53']],
  ['no servers if the machine has none', '', 'nameserver 9.9.9.9\n', []],
])('readNodeResolver() returns %s', async (_what, conf, resolved, servers) => {
  const machine = {
    conf: write('resolv.conf', conf),
    resolved: resolved === undefined ? join(folder, 'none') : write('resolved.conf', resolved),
  };
  expect(readNodeResolver('', machine).servers).toEqual(servers);
});

test('readNodeResolver() reads a given file instead of the machine configuration', async () => {
  const own = write('own.conf', 'nameserver 127.0.0.1\nsearch own.example\n');
  expect(readNodeResolver(own)).toEqual({ servers: ['127.0.0.1'], searches: ['own.example'], options: [] });
  expect(readNodeResolver(join(folder, 'none')).servers).toEqual([]);
});
