/** Loads image archives into containerd's k8s.io namespace, with containerd's own `ctr`, and waits until CRI lists the images. */

import { spawn } from 'node:child_process';
import { stat } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { UserError } from '../../platform/files.ts';
import type { Timers } from '../../platform/platform.ts';
import { CommandError, runCommandOk } from '../../platform/processes.ts';
import { type Ctr, ctrFor } from '../containerd/ctr.ts';
import { type Connection, connect, delay, hasCode } from '../cri/connection.ts';
import { imageStatus } from '../cri/images/image-service.ts';
import { type OciIndex, type OnRead, openArchive, readArchive } from './archive-reader.ts';
import { completeIndex, withIndex } from './complete-index.ts';
import { emulatesCpus, refusalForCpu } from './cpu/archive-cpu.ts';
import { guardImport, type ImportGuard, listNames } from './failed-import.ts';
import { importFailure, RUNTIME_ENDED, runtimeEnded } from './import-failure.ts';
import { storedName } from './references.ts';
import { deleteShortNames } from './removal.ts';

export interface LoadOptions {
  /** The address of containerd's socket in the form unix:///PATH. */
  endpoint: string;
  timers: Timers;
  /** Called when a step begins, and for each piece of the archive that has been read. */
  progress?(step: LoadStep): void;
}

/** checking: lifepod looks up the image names. loading: lifepod sends the archive to containerd. unpacking: containerd unpacks it. */
export interface LoadStep {
  kind: 'checking' | 'loading' | 'unpacking';
  file: string;
  /** How many bytes of the file, before any decompression, have been read in this step. */
  doneBytes: number;
  totalBytes: number;
}

const POLL_MILLIS = 5;
const LISTED_WITHIN_MILLIS = 30_000;

/**
 * Loads the files in order. Resolves with the loaded references in complete form (docker.io/library/busybox:1.28). Rejects with a UserError
 * if ctr is not installed, if a file is not an archive of named images, if containerd cannot import the file, or if CRI does not list one
 * of its images within 30 s. The images of the preceding files remain loaded.
 */
export async function loadImageArchives(options: LoadOptions, files: string[], signal: AbortSignal): Promise<string[]> {
  const ctr = ctrFor(options.endpoint);
  const connection = connect(options.endpoint);
  const load: Load = {
    ctr,
    connection,
    timers: options.timers,
    progress: options.progress ?? (() => undefined),
    signal,
  };
  try {
    // Outside the catch below: if the runtime does not answer yet, the error must not say that it ended during the load.
    await listNames(connection, signal);
    const loaded: string[] = [];
    for (const file of files)
      loaded.push(
        ...(await loadArchive(load, file).catch((error: unknown) => {
          throw hasRuntimeEnded(error) ? new UserError(runtimeEnded(file)) : error;
        })),
      );
    return loaded;
  } finally {
    connection.close();
  }
}

const hasRuntimeEnded = (error: unknown): boolean =>
  hasCode(error, 'Unavailable') || (error instanceof CommandError && RUNTIME_ENDED.test(error.message));

interface Load {
  ctr: Ctr;
  connection: Connection;
  timers: Timers;
  progress(step: LoadStep): void;
  signal: AbortSignal;
}

/** Resolves with the references in complete form. */
async function loadArchive(load: Load, file: string): Promise<string[]> {
  const { connection, timers, signal } = load;
  const { size: totalBytes } = await stat(file).catch(() => ({ size: 0 }));
  const report = (kind: LoadStep['kind'], doneBytes: number): void =>
    load.progress({ kind, file, doneBytes, totalBytes });
  report('checking', 0);
  const content = await readArchive(file, signal, (bytes) => report('checking', bytes));
  const refusal = emulatesCpus() ? undefined : refusalForCpu(file, content);
  if (refusal !== undefined) throw new UserError(refusal);
  // An archive may have the same name in its manifest.json and, in another form, in its index.json.
  const references = [...new Set(content.names.map(storedName))];
  const completed = content.index && completeIndex(content.index);
  const assigned = new Set([...references, ...(completed?.names ?? [])]);
  await deleteShortNames(connection, references, timers, signal);
  const guard = await guardImport(connection, [...assigned], timers, signal);
  const reading = (bytes: number): void => report(bytes < totalBytes ? 'loading' : 'unpacking', bytes);
  report('loading', 0);
  await importWhole(guard, () => importArchive(load, file, completed?.index, reading));
  for (const reference of references) await listed(load, reference, guard.idsBefore.get(reference));
  return references;
}

/** Restores the image names if the import fails, for example because of a damaged layer. */
async function importWhole(guard: ImportGuard, run: () => Promise<void>): Promise<void> {
  try {
    await run();
  } catch (error) {
    // An error of undo() is ignored, because the user needs to know why the import failed.
    await guard.undo().catch(() => undefined);
    throw error;
  } finally {
    await guard.release();
  }
}

/**
 * Decompresses the archive, because ctr of containerd 1.6 cannot do that. Rejects with a UserError if the archive is not accepted. `index`:
 * the content of index.json to import instead of the index in the file.
 */
async function importArchive(
  { ctr, signal }: Load,
  file: string,
  index: OciIndex | undefined,
  onRead: OnRead,
): Promise<void> {
  const archive = await openArchive(file, onRead);
  const source: AsyncIterable<unknown> = index === undefined ? archive : withIndex(archive, index);
  const child = spawn(ctr.program, [...ctr.args, 'images', 'import', '-'], {
    stdio: ['pipe', 'ignore', 'pipe'],
    // Ctrl+C on a terminal does not reach ctr. It ends because its input ends, and can then delete its lease, which would keep the content
    // on the disk for a day.
    detached: true,
    signal,
    killSignal: 'SIGKILL',
  });
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  // ctr may exit before it has read the whole archive. The write error is ignored, because ctr's error output contains the reason.
  const fed = pipeline(source, child.stdin).catch(() => undefined);
  const [code, stderr] = await Promise.all([ended, text(child.stderr), fed]);
  if (code === 0) return;
  throw new UserError(importFailure(file, stderr, code));
}

/**
 * Resolves when CRI shows the imported image under the reference. Rejects with a UserError after 30 s. Polls, because CRI does not report
 * when it has processed a new name. `idBefore`: the ID of the image that CRI showed under the reference before the import.
 */
async function listed(load: Load, reference: string, idBefore: string | undefined): Promise<void> {
  const { connection, timers, signal } = load;
  const deadline = timers.now() + LISTED_WITHIN_MILLIS;
  let ids: string[] | undefined;
  for (;;) {
    const id = (await imageStatus(connection, reference, signal))?.id;
    if (id !== undefined && id !== idBefore) return;
    // Either CRI still shows the previous image, or the archive contains this image again.
    if (id !== undefined) {
      ids ??= await imageIds(load, reference);
      if (ids.includes(id)) return;
    }
    if (timers.now() > deadline)
      throw new UserError(`the runtime does not list the image ${reference} after loading it`);
    await delay(POLL_MILLIS, timers, signal);
  }
}

/** Resolves with the IDs, one for each platform, of the image that has the name in containerd. An ID is the digest of a configuration. */
async function imageIds(load: Load, name: string): Promise<string[]> {
  const { ctr, connection, signal } = load;
  const ids = async (digest: string): Promise<string[]> => {
    const content = await runCommandOk(ctr.program, [...ctr.args, 'content', 'get', digest], { signal });
    const { config, manifests = [] } = JSON.parse(content) as Manifest;
    if (config !== undefined) return [config.digest];
    // The archive may lack the manifests of other platforms.
    return (await Promise.all(manifests.map((manifest) => ids(manifest.digest).catch(() => [])))).flat();
  };
  const target = (await listNames(connection, signal)).find((image) => image.name === name)?.target;
  return target ? ids(target.digest) : [];
}

/** A manifest of an image, or an index of the manifests of several platforms. */
interface Manifest {
  config?: { digest: string };
  manifests?: { digest: string }[];
}
