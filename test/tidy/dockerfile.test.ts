/** The Dockerfile, the .dockerignore and the README's section "In a container" must agree with each other and with lifepod. */
import { expect, test } from 'vitest';
import { missingPackages } from '../../src/engine/machine-checks.ts';
import { DOCKERFILE, sentFiles } from '../machines/container/build-image.ts';
import { readmeRun } from '../machines/container/container-tests.ts';
import { imageConfig, readStages } from '../machines/container/instructions.ts';
import { files } from './sources.ts';

const stages = readStages(DOCKERFILE);
const [last = { from: '', instructions: [] }] = stages.slice(-1);

test('the image has every Debian package that lifepod needs', () => {
  const installed = last.instructions.filter(({ kind }) => kind === 'RUN').flatMap(({ text }) => text.split(/\s+/));
  expect(installed).toEqual(expect.arrayContaining(missingPackages(true, () => undefined)));
});

test("the README's docker run mounts the volume, and publishes the port, that the image declares", () => {
  const run = readmeRun();
  const { volumes, ports, entrypoint, healthcheck } = imageConfig(last);
  expect(volumes).toEqual([run.volume[1]]);
  expect(ports).toEqual([String(run.publish[2])]);
  expect(run.publish[1]).toBe(run.publish[2]);
  expect(entrypoint).toContain('--shutdown-on-stop');
  expect(healthcheck[0]).toBe('kubectl');
});

test('the builder of the image gets the sources and no other files', () => {
  const isSent = sentFiles();
  expect(['.git/config', 'node_modules/a/b', 'dist/cli/main.js', 'src/api/generated/types.ts'].filter(isSent)).toEqual(
    [],
  );
  const sent = new Set(files.filter(isSent).map((path) => path.split('/')[0]));
  expect([...sent].sort()).toEqual(
    [
      'LICENSE',
      'README.md',
      'bin',
      'examples',
      'package-lock.json',
      'package.json',
      'scripts',
      'src',
      'tsconfig.json',
    ].sort(),
  );
});
