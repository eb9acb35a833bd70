import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemTimers } from '../../platform/node-js.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { createShimExits } from './shim-exits.ts';
import { findBundledShims } from './shims.ts';

let state: string;
beforeEach(() => {
  state = mkdtempSync(join(tmpdir(), 'lifepod-run-state-'));
});
afterEach(() => rmSync(state, { recursive: true, force: true }));

test.each([
  ['the file address, as containerd before 2.0 does', 'address', (socket: string) => `unix://${socket}\n`],
  [
    'the file bootstrap.json, as containerd 2.x does',
    'bootstrap.json',
    (socket: string) => JSON.stringify({ version: 3, address: `unix://${socket}`, protocol: 'ttrpc' }),
  ],
])('a shim is found by the address that containerd wrote to %s', (_, file, contents) => {
  const bundle = join(state, 'io.containerd.runtime.v2.task/k8s.io/shim');
  mkdirSync(bundle, { recursive: true });
  writeFileSync(join(bundle, file), contents('/a/s'));
  expect(findBundledShims(state)).toMatchObject([{ containerId: 'shim', socket: '/a/s' }]);
});

test.each(['', '{', 'null', '{"address":1}', '{"address":"tcp://a"}'])(
  'the search for shims ignores a bootstrap.json with the content %j',
  (contents) => {
    const bundle = join(state, 'io.containerd.runtime.v2.task/k8s.io/shim');
    mkdirSync(bundle, { recursive: true });
    writeFileSync(join(bundle, 'bootstrap.json'), contents);
    expect(findBundledShims(state)).toEqual([]);
  },
);

test('the search for shims ignores a file among the bundle folders, and a file in place of their parent folder', async () => {
  const bundles = join(state, 'io.containerd.runtime.v2.task/k8s.io');
  mkdirSync(join(bundles, 'c1'), { recursive: true });
  writeFileSync(join(bundles, 'c1', 'address'), 'unix:///nowhere');
  writeFileSync(join(bundles, 'file'), '');
  expect(findBundledShims(state)).toEqual([{ containerId: 'c1', socket: '/nowhere', version: 2, protocol: 'ttrpc' }]);
  const exits = createShimExits({ state, log: silentLog, timers: systemTimers() });
  expect(await exits.watch()).toBe(1);
  rmSync(bundles, { recursive: true });
  writeFileSync(bundles, '');
  expect(await exits.watch()).toBe(0);
  exits.unwatch();
});
