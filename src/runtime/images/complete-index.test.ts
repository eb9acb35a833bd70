import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { extract, pack } from 'tar-stream';
import { expect, test } from 'vitest';
import type { OciDescriptor } from './archive-reader.ts';
import { completeIndex, withIndex } from './complete-index.ts';

const DIGEST = `sha256:${'0'.repeat(64)}`;
const REF_NAME = 'org.opencontainers.image.ref.name';
const CONTAINERD_NAME = 'io.containerd.image.name';

test.each<[string, Record<string, string>, string[]]>([
  ['short', { [REF_NAME]: 'web:1' }, ['docker.io/library/web:1', `docker.io/library/web@${DIGEST}`]],
  ['complete', { [REF_NAME]: 'example.com/web:1' }, ['example.com/web:1', `example.com/web@${DIGEST}`]],
  [
    'that of containerd',
    { [REF_NAME]: '1', [CONTAINERD_NAME]: 'example.com/web:1' },
    ['example.com/web:1', `example.com/web@${DIGEST}`],
  ],
  ['a digest', { [REF_NAME]: `web:1@${DIGEST}` }, [`docker.io/library/web@${DIGEST}`]],
])('an image gets the names that a pull records if its name is %s', (_, annotations, names) => {
  const { index, names: all } = completeIndex({ manifests: [{ digest: DIGEST, annotations }] });
  expect(all).toEqual(names);
  expect(index.manifests).toEqual(
    names.map((name) => ({ digest: DIGEST, annotations: { ...annotations, [CONTAINERD_NAME]: name } })),
  );
});

test('images without a name and other fields of the index are unchanged', () => {
  const manifests: OciDescriptor[] = [{ digest: DIGEST }, { annotations: { [REF_NAME]: 'v7' } }];
  const index = { schemaVersion: 2, manifests };
  expect(completeIndex(index)).toEqual({ index, names: [] });
  expect(completeIndex({})).toEqual({ index: { manifests: [] }, names: [] });
});

test('withIndex() replaces only the content of index.json', async () => {
  const tar = pack();
  tar.entry({ name: 'blobs', type: 'directory' });
  tar.entry({ name: './index.json' }, 'old');
  tar.entry({ name: 'blobs/large', mode: 0o400 }, Buffer.alloc(1_000_000, 'x'));
  tar.entry({ name: 'layer.tar', type: 'symlink', linkname: 'blobs/large' });
  tar.finalize();
  const changed = Readable.from(withIndex(Readable.from(tar), { manifests: [{ digest: DIGEST }] })).pipe(extract());
  const seen: unknown[] = [];
  for await (const entry of changed) {
    const { name, type, mode, linkname } = entry.header;
    const content = await buffer(entry);
    seen.push([name, type, mode, linkname, content.length < 1000 ? content.toString() : content.length]);
  }
  expect(seen).toEqual([
    ['blobs', 'directory', 0o755, null, ''],
    ['index.json', 'file', 0o644, null, `{"manifests":[{"digest":"${DIGEST}"}]}`],
    ['blobs/large', 'file', 0o400, null, 1_000_000],
    ['layer.tar', 'symlink', 0o644, 'blobs/large', ''],
  ]);
});

test('an error of the archive ends the stream with this error', async () => {
  const failing = Readable.from(
    (async function* () {
      yield Buffer.alloc(100);
      throw new Error('no more');
    })(),
  );
  await expect(buffer(withIndex(failing, {}))).rejects.toThrow('no more');
});

test('a reader that ends early closes the archive', async () => {
  const tar = pack();
  tar.entry({ name: 'large' }, Buffer.alloc(10_000_000));
  tar.finalize();
  const archive = Readable.from(tar);
  const closed = new Promise((resolve) => archive.once('close', resolve));
  for await (const _ of withIndex(archive, {})) break;
  await closed;
});
