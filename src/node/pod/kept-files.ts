/**
 * Stores copies of ConfigMaps and Secrets in the Pods' folders, so that the copies outlive the agent.
 *
 * Invariants: only root can read the files, and the copies of Secrets are in memory only. A file may be empty after a crash of the machine.
 */
import { chmod, mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { KubeObject } from '../../machinery/meta.ts';
import type { PodMemory } from '../volumes/pod-memory.ts';
import type { FileSource } from '../volumes/references.ts';

/** The folder with the copies, both in the Pod's folder on disk and in its folder in memory. */
export const KEPT_FOLDER = 'kept';

export interface Reference {
  resource: FileSource;
  name: string;
}

export interface Content {
  type?: string;
  data?: Record<string, string>;
}

export interface KeptFiles {
  /** Creates or replaces a copy. The caller must write the objects of a Pod one at a time, since their writes share a temporary file. */
  write(podUid: string, reference: Reference, object: KubeObject & Content): Promise<void>;
  /** Resolves to undefined if no readable copy exists, for example because a reboot has emptied the tmpfs. */
  read<T extends KubeObject>(podUid: string, reference: Reference): Promise<T | undefined>;
}

export interface KeptFilesOptions {
  podDirectory(podUid: string): string;
  memory: PodMemory;
}

export function createKeptFiles({ podDirectory, memory }: KeptFilesOptions): KeptFiles {
  const folderOf = (uid: string, resource: FileSource): string =>
    join(resource === 'secrets' ? memory.directory(uid) : podDirectory(uid), KEPT_FOLDER, resource);
  const fileOf = (uid: string, { resource, name }: Reference): string =>
    join(folderOf(uid, resource), encodeURIComponent(name));
  return {
    async write(uid, reference, object) {
      const folder = folderOf(uid, reference.resource);
      // Create the Pod's folder on disk for Secrets too, since orphans.ts finds the files of a Pod by this folder.
      await mkdir(podDirectory(uid), { recursive: true, mode: 0o750 });
      if (reference.resource === 'secrets') await memory.ready();
      await mkdir(folder, { recursive: true, mode: 0o700 });
      // No object's name begins with a dot, so this file cannot clash with a copy.
      const unfinished = join(folder, '.new');
      await writeFile(unfinished, JSON.stringify(contentOf(object)), { mode: 0o600 });
      await chmod(unfinished, 0o600);
      await rename(unfinished, fileOf(uid, reference));
    },
    async read<T extends KubeObject>(uid: string, reference: Reference) {
      try {
        return JSON.parse(await readFile(fileOf(uid, reference), 'utf8')) as T;
      } catch {
        // The file is absent, or empty because the machine crashed soon after the file was written.
        return undefined;
      }
    },
  };
}

const contentOf = ({ apiVersion, kind, metadata: { name, namespace, uid }, type, data }: KubeObject & Content) => ({
  apiVersion,
  kind,
  metadata: { name, namespace, uid },
  type,
  data,
});
