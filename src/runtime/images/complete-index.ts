/**
 * Completes the names in the index.json of an OCI image layout before containerd imports them. containerd would assign a short name such
 * as web:1 unchanged, which CRI shows as docker.io/library/web:1, but can neither find nor remove.
 */
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { extract, pack } from 'tar-stream';
import { CONTAINERD_NAME, entryName, type OciDescriptor, type OciIndex, ociName } from './archive-reader.ts';
import { repositoryOf, storedName } from './references.ts';

/**
 * Returns the index with the names that CRI records when it pulls an image: the complete name, and the digest in the same repository, so
 * that references by digest find the image. `names`: all these names.
 */
export function completeIndex(index: OciIndex): { index: OciIndex; names: string[] } {
  const all: string[] = [];
  const manifests = (index.manifests ?? []).flatMap((manifest) => {
    const names = ociName(manifest).flatMap((name) => namesOf(name, manifest));
    all.push(...names);
    if (names.length === 0) return [manifest];
    return names.map((name) => ({ ...manifest, annotations: { ...manifest.annotations, [CONTAINERD_NAME]: name } }));
  });
  return { index: { ...index, manifests }, names: [...new Set(all)] };
}

const namesOf = (name: string, { digest }: OciDescriptor): string[] => [
  ...new Set([storedName(name), ...(typeof digest === 'string' ? [`${repositoryOf(name)}@${digest}`] : [])]),
];

/** Returns a stream of the plain archive in which the index replaces the content of index.json. */
export function withIndex(archive: Readable, index: OciIndex): AsyncIterable<unknown> {
  const [entries, changed] = [extract(), pack()];
  const copy = async (): Promise<void> => {
    for await (const entry of entries) {
      if (entryName(entry.header) === 'index.json') {
        entry.resume();
        changed.entry({ name: 'index.json' }, JSON.stringify(index));
      } else await pipeline(entry, changed.entry(entry.header));
    }
    changed.finalize();
  };
  // The reader of the returned stream gets an error of the archive. If the reader ends early, the archive must be closed.
  Promise.all([pipeline(archive, entries), copy()]).catch((error: Error) => changed.destroy(error));
  changed.once('close', () => entries.destroy());
  return changed;
}
