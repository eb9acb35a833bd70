/** Loading the modules of the engine takes 0.3 s of CPU time, so only the process that runs the engine may load them. */
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { read } from './sources.ts';

/** Matches imports and re-exports of values from relative paths, but neither imports of types nor dynamic imports. */
const STATIC = /^(?:import|export)\s+(?!type\b)(?:[^;'"]*?\sfrom\s+)?'(\.[^']+\.ts)'/gm;

function loadedBy(path: string, loaded = new Set<string>()): Set<string> {
  if (loaded.has(path)) return loaded;
  loaded.add(path);
  for (const [, specifier = ''] of read(path).matchAll(STATIC)) loadedBy(join(dirname(path), specifier), loaded);
  return loaded;
}

const ENGINE = 'src/engine/engine.ts';

test('loadedBy follows static imports of values', () => {
  expect([...loadedBy(ENGINE)]).toEqual(expect.arrayContaining(['src/apiserver/server.ts', 'src/platform/files.ts']));
});

test.each(['main.ts', 'detached/detach.ts', 'up.ts'])('importing src/cli/%s does not load the engine', (name) => {
  expect(loadedBy(`src/cli/${name}`)).not.toContain(ENGINE);
});
