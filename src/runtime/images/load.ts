/**
 * Loads archives of images into containerd's k8s.io namespace, with containerd's own `ctr`, and waits until CRI lists them.
 */

import { UserError } from '../../platform/files.ts';
import type { Timers } from '../../platform/platform.ts';
import { findProgram, runCommand, runCommandOk } from '../../platform/processes.ts';
import { type Connection, CRI_NAMESPACE, connect, delay } from '../cri/connection.ts';
import { imageStatus } from '../cri/images.ts';
import { archiveReferences } from './archive-reader.ts';
import { normalizeReference } from './references.ts';

export interface LoadOptions {
  /** unix:///… */
  endpoint: string;
  timers: Timers;
}

const LOOK_AGAIN_MILLIS = 5;
const LISTED_WITHIN_MILLIS = 30_000;

/**
 * Returns the references loaded, complete (docker.io/library/busybox:1.28). Throws a UserError for a file that is not an
 * archive of named images; what came before it stays loaded.
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
      const result = await runCommand(ctr, [...args, 'import', file], { signal });
      if (result.code !== 0) {
        throw new UserError(`containerd does not accept the image archive ${file}: ${result.stderr.trim()}`);
      }
      for (const name of names) {
        const reference = normalizeReference(name);
        // containerd keeps a short name of an OCI layout as it is, and CRI then looks for the complete one.
        if (!result.stdout.includes(`unpacking ${reference} `)) {
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

/** CRI takes new images in on containerd's event and says nothing when it has: hence the repeated question. */
async function listed(connection: Connection, reference: string, timers: Timers, signal: AbortSignal): Promise<void> {
  const deadline = timers.now() + LISTED_WITHIN_MILLIS;
  while ((await imageStatus(connection, reference, signal)) === undefined) {
    if (timers.now() > deadline) throw new Error(`the runtime does not list the image ${reference} that was loaded`);
    await delay(LOOK_AGAIN_MILLIS, timers, signal);
  }
}
