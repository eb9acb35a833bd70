/**
 * Writes image archives in the format of `docker save`: one layer, a configuration and a manifest. On one CPU architecture, the same input
 * always results in the same bytes, so that an image keeps its ID.
 */

import { createHash } from 'node:crypto';
import { chmodSync, createWriteStream, renameSync } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { type Pack, pack } from 'tar-stream';
import { architecture } from '../../platform/architecture.ts';

/** The entries of the parent folders must precede this entry. */
export type Entry =
  | { type: 'directory'; path: string; mode: number }
  | { type: 'file'; path: string; mode: number; content: Buffer | string }
  /** A hard link. `target` is the path of a file in an earlier entry. */
  | { type: 'link'; path: string; target: string }
  | { type: 'symlink'; path: string; target: string };

export interface ImageConfig {
  entrypoint?: string[];
  command?: string[];
  env: string[];
  /** The name or number of the stop signal, such as SIGINT or 2; absent: the runtime sends SIGTERM. */
  stopSignal?: string;
  /** `user[:group]`, as names or numbers; absent: root. */
  user?: string;
}

/** The bytes of an archive must not depend on the time of writing. */
const EPOCH = new Date(0);

const sha256 = (bytes: Buffer | string): string => createHash('sha256').update(bytes).digest('hex');

function addEntry(tar: Pack, entry: Entry): void {
  const common = { name: entry.path, mtime: EPOCH, uid: 0, gid: 0 };
  switch (entry.type) {
    case 'directory':
      tar.entry({ ...common, type: 'directory', mode: entry.mode });
      break;
    case 'file':
      tar.entry({ ...common, type: 'file', mode: entry.mode }, entry.content);
      break;
    case 'link':
      tar.entry({ ...common, type: 'link', mode: 0o755, linkname: entry.target });
      break;
    case 'symlink':
      tar.entry({ ...common, type: 'symlink', mode: 0o777, linkname: entry.target });
  }
}

async function bytesOf(tar: Pack): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of tar) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

/** `reference`: the complete name or names of the image, such as docker.io/library/busybox:1.28. */
export async function writeImageArchive(
  file: string,
  reference: string | readonly string[],
  entries: Entry[],
  image: ImageConfig,
): Promise<void> {
  const layerTar = pack();
  for (const entry of entries) addEntry(layerTar, entry);
  layerTar.finalize();
  const layer = await bytesOf(layerTar);
  const config = JSON.stringify({
    architecture: architecture(),
    os: 'linux',
    created: EPOCH.toISOString(),
    config: {
      Env: image.env,
      ...(image.entrypoint === undefined ? {} : { Entrypoint: image.entrypoint }),
      ...(image.command === undefined ? {} : { Cmd: image.command }),
      ...(image.stopSignal === undefined ? {} : { StopSignal: image.stopSignal }),
      ...(image.user === undefined ? {} : { User: image.user }),
    },
    rootfs: { type: 'layers', diff_ids: [`sha256:${sha256(layer)}`] },
    history: [{ created: EPOCH.toISOString() }],
  });
  const [configName, layerName] = [`${sha256(config)}.json`, `${sha256(layer)}/layer.tar`];
  const archive = pack();
  addEntry(archive, { type: 'file', path: layerName, mode: 0o644, content: layer });
  addEntry(archive, { type: 'file', path: configName, mode: 0o644, content: config });
  const manifest = JSON.stringify([{ Config: configName, RepoTags: [reference].flat(), Layers: [layerName] }]);
  addEntry(archive, { type: 'file', path: 'manifest.json', mode: 0o644, content: manifest });
  archive.finalize();
  const temporary = `${file}.new`;
  await pipeline(archive, createWriteStream(temporary, { mode: 0o600 })).catch((error: Error) => {
    // The error of a failed write does not include the path.
    throw Object.assign(error, { path: file });
  });
  chmodSync(temporary, 0o600);
  renameSync(temporary, file);
}
