/**
 * Loading the modules of the engine takes 0.3 s of CPU time, so only the process that runs the engine may load them. gRPC takes 0.03 s, so
 * only commands that talk to the container runtime load it.
 */
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { read } from './sources.ts';

/** Matches imports and re-exports of values, but neither imports of types nor dynamic imports. */
const STATIC = /^(?:import|export)\s+(?!type\b)(?:[^;'"]*?\sfrom\s+)?'([^']+)'/gm;

/** Returns the paths of modules, and the names of packages. */
function loadedBy(path: string, loaded = new Set<string>()): Set<string> {
  if (loaded.has(path)) return loaded;
  loaded.add(path);
  for (const [, specifier = ''] of read(path).matchAll(STATIC)) {
    if (specifier.startsWith('.') && specifier.endsWith('.ts')) loadedBy(join(dirname(path), specifier), loaded);
    else loaded.add(specifier);
  }
  return loaded;
}

const ENGINE = 'src/engine/engine.ts';

test('loadedBy follows static imports of values', () => {
  expect([...loadedBy(ENGINE)]).toEqual(
    expect.arrayContaining(['src/apiserver/server.ts', 'src/platform/files.ts', '@grpc/grpc-js']),
  );
});

test.each(['main', 'detached/detach', 'up'])('importing src/cli/%s.ts does not load the engine', (name) => {
  expect(loadedBy(`src/cli/${name}.ts`)).not.toContain(ENGINE);
});

test.each([
  'main',
  'describe/describe',
  'detached/up-detached',
  'logs/logs',
  'session/run',
  'session/session',
  'skip',
  'status/status',
  'timeline/timeline',
  'why/why',
])('importing src/cli/%s.ts does not load gRPC', (name) => {
  expect(loadedBy(`src/cli/${name}.ts`)).not.toContain('@grpc/grpc-js');
});
