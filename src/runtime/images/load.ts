/**
 * Loads image archives into containerd's k8s.io namespace, with containerd's own `ctr`, and waits until CRI lists the images.
 */

import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { UserError } from '../../platform/files.ts';
import type { Timers } from '../../platform/platform.ts';
import { findProgram, runCommandOk } from '../../platform/processes.ts';
import { type Connection, CRI_NAMESPACE, connect, delay } from '../cri/connection.ts';
import { imageStatus } from '../cri/images/image-service.ts';
import { archiveReferences, openArchive } from './archive-reader.ts';
import { guardImport } from './failed-import.ts';
import { normalizeReference } from './references.ts';

export interface LoadOptions {
  /** containerd's address: unix:///… */
  endpoint: string;
  timers: Timers;
}

const POLL_MILLIS = 5;
const LISTED_WITHIN_MILLIS = 30_000;

/**
 * Loads the files in order. Resolves with the loaded references in complete form (docker.io/library/busybox:1.28). Rejects
 * with a UserError if ctr is not installed, if a file is not an archive of named images, if containerd does not accept the
 * file, or if CRI does not list one of its images within 30 s. The images of the preceding files stay loaded.
 */
export async function loadImageArchives(options: LoadOptions, files: string[], signal: AbortSignal): Promise<string[]> {
  const ctr = findProgram('ctr');
  if (ctr === undefined) throw new UserError(`the command 'ctr' is missing: install the package containerd`);
  const args = ['--address', options.endpoint.replace(/^unix:\/\//, ''), '--namespace', CRI_NAMESPACE, 'images'];
  const connection = connect(options.endpoint);
  try {
    const loaded: string[] = [];
    for (const file of files) {
      const names = await archiveReferences(file, signal);
      const report = await importWhole(connection, names, options.timers, signal, () =>
        importArchive(ctr, [...args, 'import', '-'], file, signal),
      );
      for (const name of names) {
        const reference = normalizeReference(name);
        // containerd stores a short name from an OCI layout unchanged, but CRI looks up the complete name.
        if (!report.includes(`unpacking ${reference} `)) {
          await runCommandOk(ctr, [...args, 'tag', '--force', name, reference], { signal });
        }
        await listed(connection, reference, options.timers, signal);
        loaded.push(reference);
      }
    }
    return loaded;
  } finally {
    connection.close();
  }
}

/** Calls `run`, which imports an archive. If the import fails, for example because of a damaged layer, restores the image names. */
async function importWhole(
  connection: Connection,
  names: readonly string[],
  timers: Timers,
  signal: AbortSignal,
  run: () => Promise<string>,
): Promise<string> {
  const references = [...new Set([...names, ...names.map(normalizeReference)])];
  const guard = await guardImport(connection, references, timers, signal);
  try {
    return await run();
  } catch (error) {
    // Throw the error of the import even if undo() fails: the user needs to know why the import failed.
    await guard.undo().catch(() => undefined);
    throw error;
  } finally {
    await guard.release();
  }
}

/** Imports the archive and returns ctr's output. Decompresses the archive, because ctr of containerd 1.6 cannot read compressed ones. */
async function importArchive(ctr: string, args: string[], file: string, signal: AbortSignal): Promise<string> {
  const source = await openArchive(file);
  const child = spawn(ctr, args, { stdio: ['pipe', 'pipe', 'pipe'], signal, killSignal: 'SIGKILL' });
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  // ctr may exit before it has read the whole archive. Its error output then contains the reason, so the write error is ignored.
  const fed = pipeline(source, child.stdin).catch(() => undefined);
  const [code, stdout, stderr] = await Promise.all([ended, text(child.stdout), text(child.stderr), fed]);
  if (code === 0) return stdout;
  throw new UserError(`containerd does not accept the image archive ${file}: ${stderr.trim()}`);
}

/**
 * Resolves once CRI lists the image; rejects with a UserError after 30 s. Polls, because CRI does not report when it has added
 * an image.
 */
async function listed(connection: Connection, reference: string, timers: Timers, signal: AbortSignal): Promise<void> {
  const deadline = timers.now() + LISTED_WITHIN_MILLIS;
  while ((await imageStatus(connection, reference, signal)) === undefined) {
    if (timers.now() > deadline)
      throw new UserError(`the runtime does not list the image ${reference} after loading it`);
    await delay(POLL_MILLIS, timers, signal);
  }
}
