/** Archives of images that are broken, loaded into a real containerd: each is refused with a plain sentence. */
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { pack } from 'tar-stream';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { UserError } from '../../src/platform/files.ts';
import { loadImageArchives } from '../../src/runtime/images/load.ts';
import { type RealRuntime, startRealRuntime } from './containerd-fixture.ts';

const never = new AbortController().signal;
let real: RealRuntime;
beforeAll(async () => {
  real = await startRealRuntime();
});
afterAll(() => real?.close());

const path = (name: string): string => join(real.where.dataDir, name);
const load = (file: string): Promise<string[]> =>
  loadImageArchives({ endpoint: real.containerd.endpoint, timers: real.where.options.timers }, [path(file)], never);
const refusal = async (file: string): Promise<string> => {
  const error = await load(file).then(
    (loaded) => new Error(`loaded ${loaded}`),
    (reason: Error) => reason,
  );
  expect(error).toBeInstanceOf(UserError);
  return error.message;
};
async function writeTar(file: string, entries: Record<string, string>): Promise<void> {
  const archive = pack();
  for (const [name, content] of Object.entries(entries)) archive.entry({ name }, content);
  archive.finalize();
  await pipeline(archive, createWriteStream(path(file)));
}
test.each([
  ['manifest.json', 'null'],
  ['manifest.json', '42'],
  ['manifest.json', '"text"'],
  ['manifest.json', '{}'],
  ['manifest.json', '{"length":1}'],
  ['manifest.json', '[null]'],
  ['manifest.json', '[[]]'],
  ['manifest.json', '[{"RepoTags":"busybox:1"}]'],
  ['manifest.json', '[{"RepoTags":[null]}]'],
  ['manifest.json', '[{"RepoTags":[{"a":1}]}]'],
  ['index.json', 'null'],
  ['index.json', '[]'],
  ['index.json', '{"manifests":5}'],
  ['index.json', '{"manifests":[null]}'],
  ['index.json', '{"manifests":[{"annotations":[]}]}'],
  ['index.json', '{"manifests":[{"annotations":{"io.containerd.image.name":5}}]}'],
])('an archive whose %s is %s is refused with a plain sentence', async (name, content) => {
  await writeTar('malformed.tar', { [name]: content });
  expect(await refusal('malformed.tar')).toBe(
    `${path('malformed.tar')} is not an archive of images: give a file made by 'docker save' or one with an OCI image layout`,
  );
});

test.each(['--help', '', ' ', 'Upper/Case:1', 'a:b:c', 'a\nb', `${'x'.repeat(300)}:1`])(
  'an archive that names its image %j is refused with a plain sentence',
  async (name) => {
    await writeTar('named.tar', { 'manifest.json': JSON.stringify([{ RepoTags: [name] }]) });
    expect(await refusal('named.tar')).toBe(
      `the archive ${path('named.tar')} names an image ${JSON.stringify(name)}: that is not a valid reference`,
    );
  },
);
