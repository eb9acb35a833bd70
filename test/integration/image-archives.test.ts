import { createHash, randomBytes } from 'node:crypto';
import { createWriteStream, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { pack } from 'tar-stream';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { UserError } from '../../src/platform/files.ts';
import { runCommandOk } from '../../src/platform/processes.ts';
import { connect } from '../../src/runtime/cri/connection.ts';
import { writeImageArchive } from '../../src/runtime/images/archive-writer.ts';
import { listNames } from '../../src/runtime/images/failed-import.ts';
import { loadImageArchives } from '../../src/runtime/images/load.ts';
import { makeBusyboxArchive } from '../../src/runtime/images/local-images.ts';
import { imageNameRule } from '../../src/runtime/images/references.ts';
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
/** The order is fixed, for comparison. */
const listed = async (): Promise<string[]> =>
  (await real.runtime.listImages(never)).map(({ id, tags }) => `${id} ${[...tags].sort()}`).sort();

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
  'an archive whose image is named %j is refused with a plain sentence',
  async (name) => {
    await writeTar('named.tar', { 'manifest.json': JSON.stringify([{ RepoTags: [name] }]) });
    expect(await refusal('named.tar')).toBe(
      `the archive ${path('named.tar')} names an image ${JSON.stringify(name)}: that is not a valid reference; ${imageNameRule(name)}`,
    );
  },
);

test('a load whose reference exists resolves only once the runtime shows the new image', async () => {
  const ids = new Set<string | undefined>();
  for (let i = 0; i < 10; i++) {
    const file = { type: 'file', path: 'file', mode: 0o644, content: randomBytes(100) } as const;
    await writeImageArchive(path('again.tar'), 'example.com/again:1', [file], { env: [] });
    await load('again.tar');
    ids.add((await real.runtime.imageStatus('example.com/again:1', never))?.id);
  }
  expect(ids.size).toBe(10);
});

/** Writes an OCI layout of an image with random content to the folder `layout`, with skopeo. Resolves with its index.json. */
async function makeLayout(name: string): Promise<{ manifests: { digest: string }[] }> {
  const file = { type: 'file', path: 'file', mode: 0o644, content: randomBytes(100_000) } as const;
  await writeImageArchive(path('whole.tar'), 'docker.io/library/whole:1', [file], { env: [] });
  rmSync(path('layout'), { recursive: true, force: true });
  const [source, target] = [`docker-archive:${path('whole.tar')}`, `oci:${path('layout')}:${name}`];
  await runCommandOk('skopeo', ['--insecure-policy', 'copy', source, target]);
  return JSON.parse(readFileSync(path('layout/index.json'), 'utf8'));
}
const packLayout = (file: string): Promise<string> =>
  runCommandOk('tar', ['-C', path('layout'), '-cf', path(file), ...readdirSync(path('layout'))]);

test.each(['docker-archive', 'oci-archive'])(
  'an image for another CPU is refused in the format %s, which may name the CPU only in the configuration',
  async (format) => {
    const [own, other] = process.arch === 'x64' ? ['amd64', 's390x'] : [process.arch, 's390x'];
    const config = { architecture: other, os: 'linux', config: {}, rootfs: { type: 'layers', diff_ids: [] } };
    const manifest = [{ Config: 'config.json', RepoTags: ['example.com/other:1'], Layers: [] }];
    await writeTar('docker-archive.tar', {
      'config.json': JSON.stringify(config),
      'manifest.json': JSON.stringify(manifest),
    });
    rmSync(path('oci-archive.tar'), { force: true });
    const [source, target] = [path('docker-archive.tar'), `oci-archive:${path('oci-archive.tar')}:example.com/other:1`];
    await runCommandOk('skopeo', ['--insecure-policy', 'copy', `docker-archive:${source}`, target]);
    const before = await listed();
    // containerd, which refuses the docker-archive, does not report the platform of its image.
    const only = format === 'oci-archive' ? `, only for linux/${other}` : '';
    expect(await refusal(`${format}.tar`)).toBe(
      `the image archive ${path(`${format}.tar`)} has no image for this machine (linux/${own})${only}: build or save it for linux/${own}`,
    );
    expect(await listed()).toEqual(before);
  },
);

async function namesInContainerd(): Promise<string[]> {
  const connection = connect(real.containerd.endpoint);
  try {
    return (await listNames(connection, never)).map(({ name }) => name).sort();
  } finally {
    connection.close();
  }
}

test('an image with a short name in an OCI layout gets the complete name and its digest, as a pulled image', async () => {
  const before = await namesInContainerd();
  const { manifests } = await makeLayout('web:1');
  const digest = manifests[0]?.digest ?? '';
  await packLayout('web.tar');
  expect(await load('web.tar')).toEqual(['docker.io/library/web:1']);
  const { id = '', tags } = (await real.runtime.imageStatus('web:1', never)) ?? {};
  const added = (await namesInContainerd()).filter((name) => !before.includes(name));
  expect([tags, added]).toEqual([
    ['docker.io/library/web:1'],
    ['docker.io/library/web:1', `docker.io/library/web@${digest}`, id],
  ]);
  for (const reference of [`web@${digest}`, `web:any@${digest}`])
    expect((await real.runtime.imageStatus(reference, never))?.id).toBe(id);
  await real.runtime.removeImage(id, never);
  expect(await namesInContainerd()).toEqual(before);
});

test.each(['awhile:1', 'web:2'])('the removal of an image also deletes the short name %s', async (name) => {
  const { endpoint } = real.containerd;
  const ctr = (...args: string[]): Promise<string> =>
    runCommandOk('ctr', ['--address', endpoint.replace('unix://', ''), '--namespace', 'k8s.io', 'images', ...args]);
  const before = await namesInContainerd();
  const complete = `docker.io/library/${name}`;
  const shown = async (): Promise<(string | undefined)[]> =>
    (await real.runtime.listImages(never)).flatMap(({ tags }) => tags).filter((tag) => tag === complete);
  await makeLayout(name);
  await packLayout('short.tar');
  const isShown = (): Promise<void> => vi.waitFor(async () => expect(await shown()).toEqual([complete]));
  const id = async (): Promise<string> =>
    (await real.runtime.listImages(never)).find(({ tags }) => tags.includes(complete))?.id ?? '';

  await ctr('import', path('short.tar'));
  await isShown();
  await real.runtime.removeImage(await id(), never);
  expect([await namesInContainerd(), await shown()]).toEqual([before, []]);

  await load('short.tar');
  await ctr('tag', complete, name);
  await isShown();
  await real.runtime.removeImage(await id(), never);
  expect([await namesInContainerd(), await shown()]).toEqual([before, []]);
});

describe('an image whose layer cannot be unpacked', () => {
  const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
  const broken = (name: string, layer: string, content = layer): Promise<void> => {
    const config = JSON.stringify({
      architecture: process.arch === 'x64' ? 'amd64' : process.arch,
      os: 'linux',
      config: {},
      rootfs: { type: 'layers', diff_ids: [`sha256:${sha256(layer)}`] },
    });
    const manifest = [{ Config: 'config.json', RepoTags: [name], Layers: ['layer.tar'] }];
    const entries = { 'config.json': config, 'layer.tar': content, 'manifest.json': JSON.stringify(manifest) };
    return writeTar('broken.tar', entries);
  };

  test.each([
    ['is not a tar archive', 'not a tar archive'.repeat(100), undefined],
    ['differs from its configuration', 'a layer', '\0'.repeat(1024)],
  ])('an image is not listed if its layer %s', async (_, layer, content) => {
    const before = await listed();
    await broken('example.com/broken:1', layer, content);
    expect(await refusal('broken.tar')).toMatch(
      /^the image archive .*broken\.tar is damaged \((?:its layer sha256:\w+|a layer) is /,
    );
    expect(await real.runtime.imageStatus('example.com/broken:1', never)).toBeUndefined();
    expect(await listed()).toEqual(before);
  });

  test.each(['example.com/lacking:1', 'zlacking:1'])(
    'the image %s is not listed if its OCI layout lacks the layer',
    async (name) => {
      await makeLayout(name);
      const blobs = await runCommandOk('ls', ['-S', path('layout/blobs/sha256')]);
      rmSync(path(`layout/blobs/sha256/${blobs.split('\n')[0]}`));
      await packLayout('lacking.tar');
      const [before, namesBefore] = [await listed(), await namesInContainerd()];
      expect(await refusal('lacking.tar')).toMatch(
        /^the image archive .*lacking\.tar is damaged \(its layer sha256:\w+ is /,
      );
      expect(await listed()).toEqual(before);
      expect(await namesInContainerd()).toEqual(namesBefore);
    },
  );

  test('a failed load keeps the image that had the name before', async () => {
    await makeBusyboxArchive(path('good.tar'), { reference: 'example.com/kept:1' });
    await load('good.tar');
    const before = await listed();
    expect(before.join()).toContain('example.com/kept:1');
    await broken('example.com/kept:1', 'not a tar archive'.repeat(100));
    await refusal('broken.tar');
    expect(await listed()).toEqual(before);
    expect(await load('good.tar')).toEqual(['example.com/kept:1']);
  });
});
