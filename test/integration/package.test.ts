/** Tests the build of the npm package: dist/ contains JavaScript in place of the sources, and the data files that lifepod reads. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runCommandOk } from '../../src/platform/processes.ts';
import { REPOSITORY } from '../support/lifepod.ts';

test('the build has every file that the engine reads, and its command line runs', async () => {
  await runCommandOk('bash', [join(REPOSITORY, 'scripts/build.sh')]);
  const builtFiles = readdirSync(join(REPOSITORY, 'dist'), { recursive: true, encoding: 'utf8' });
  const read = readdirSync(join(REPOSITORY, 'src'), { recursive: true, encoding: 'utf8' }).filter((path) =>
    /\.proto$|^api\/generated\/.*\.json$/.test(path),
  );
  expect(read.length).toBeGreaterThan(5);
  expect(builtFiles).toEqual(expect.arrayContaining(read));
  const main = join(REPOSITORY, 'dist/cli/main.js');
  expect(await runCommandOk(process.execPath, [main, 'version'])).toMatch(/^lifepod \d+\.\d+\.\d+ /);
  const definitions = join(REPOSITORY, 'dist/runtime/cri/definitions.js');
  const load = `const { loadDefinitions } = await import('${definitions}'); console.log('runtime.v1.RuntimeService' in loadDefinitions());`;
  expect(await runCommandOk(process.execPath, ['--input-type=module', '-e', load])).toBe('true\n');
});
