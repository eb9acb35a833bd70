/** `lifepod image load`, `list` and `rm`: load, list and remove images in the container runtime of the running engine. */

import { accessSync, constants, createReadStream, existsSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Readable } from 'node:stream';
import type { Pod } from '../api/generated/types.ts';
import { PODS } from '../api/resources.ts';
import { instanceLabels, SANDBOX_IMAGE } from '../engine/engine-runtime.ts';
import { readEngineRecord } from '../engine/settings.ts';
import { readProblem } from '../machinery/read-problem.ts';
import { isUnfinished } from '../node/images/images-in-use.ts';
import { UserError } from '../platform/files.ts';
import { systemTimers } from '../platform/node-js.ts';
import { shellQuoted } from '../platform/programs/typed-program.ts';
import { containerdPaths } from '../runtime/containerd/paths.ts';
import { type Connection, connect } from '../runtime/cri/connection.ts';
import { imagesInUse, listImages } from '../runtime/cri/images/image-service.ts';
import { readStatus, sandboxImageOf } from '../runtime/cri/status.ts';
import { type LoadStep, loadImageArchives } from '../runtime/images/load.ts';
import { removeImageName, removeWholeImage } from '../runtime/images/removal.ts';
import type { ImageInfo } from '../runtime/runtime.ts';
import { hintsFor } from './hints.ts';
import { imagesAsJson, imageTable } from './image-list/image-table.ts';
import { planRemovals, type Removal, refuseUsed, removalLines } from './image-removal/plan-removal.ts';
import { engineClient, engineStarted } from './kubeconfig/engine-client.ts';
import { requireRunning } from './kubeconfig/own-kubeconfig.ts';
import { sayWhichEngine } from './kubeconfig/which-engine.ts';
import { loadProgress } from './progress/load-progress.ts';
import { closedBySudo, STANDARD_INPUT, withArchiveFrom } from './progress/standard-input.ts';
import { printError, printLine } from './progress/standard-output.ts';
import { terminalLine } from './progress/terminal-line.ts';

/**
 * Waits until a starting engine has started: before that, its runtime may not listen, and the record may name the runtime of the previous
 * engine.
 */
async function endpointOf(dataDir: string): Promise<string> {
  requireRunning(dataDir);
  await engineStarted(dataDir);
  requireRunning(dataDir);
  return readEngineRecord(dataDir)?.containerRuntimeEndpoint ?? `unix://${containerdPaths(dataDir).socket}`;
}

/** imagePullPolicy is Always by default for the tag latest. Source: the defaults of v1.33. */
const pulledAnyway = (reference: string): string =>
  `Pods pull ${reference} although it is on this machine, unless they set imagePullPolicy: IfNotPresent, or use a tag other than latest`;

/**
 * Loads each archive once into the container runtime, and prints the loaded images; `-` is standard input, and a file may be a pipe. If a
 * file is not readable, loads none and rejects with a UserError.
 */
export async function loadImages(dataDir: string, files: string[], say = printError, print = printLine): Promise<void> {
  const endpoint = await endpointOf(dataDir);
  sayWhichEngine(dataDir, 'fails');
  if (files.filter((file) => file === '-').length > 1)
    throw new UserError('standard input can be read only once: give - once');
  const once = [...new Map(files.map((file) => [file === '-' ? file : resolve(file), file])).values()];
  for (const file of once.filter((each) => each !== '-')) requireArchive(file);
  const timers = systemTimers();
  const named = loadProgress(terminalLine, say, () => timers.now());
  const load = async (path: string, shown = path): Promise<void> => {
    // Standard input and other pipes may take a long time to end, and the engine may have stopped meanwhile.
    requireRunning(dataDir);
    const progress = (step: LoadStep): void => named({ ...step, file: shown });
    const loaded = await loadImageArchives({ endpoint, timers, progress }, [path], new AbortController().signal);
    terminalLine.show('');
    for (const reference of loaded) print(`loaded ${reference}`);
    for (const reference of loaded.filter((each) => each.endsWith(':latest')))
      printError(`lifepod: ${pulledAnyway(reference)}`);
  };
  try {
    // The archives are loaded one by one, so that the user learns which of them were loaded if a later one is broken.
    for (const file of once) {
      const input = inputOf(file);
      if (input === undefined) await load(resolve(file));
      else
        await withArchiveFrom(input.stream, dataDir, terminalLine.show, (path) => load(path, input.name), input.name);
    }
  } finally {
    terminalLine.show('');
  }
}

/** Returns a stream of a file that can be read only once: `-` is standard input. Returns undefined for other files. */
function inputOf(file: string): { stream: Readable; name: string } | undefined {
  if (file === '-') return { stream: process.stdin, name: STANDARD_INPUT };
  return statSync(file).isFIFO() ? { stream: createReadStream(file), name: file } : undefined;
}

/** Throws a UserError if the file cannot be read or is a folder. */
export function requireArchive(file: string): void {
  let problem: string | undefined;
  try {
    accessSync(file, constants.R_OK);
    if (existsSync(join(file, 'oci-layout')))
      throw new UserError(
        `${file} is a folder with an OCI image layout: make an archive of it with 'tar -C ${shellQuoted(file)} -cf FILE .', and load FILE`,
      );
    if (statSync(file).isDirectory()) problem = 'is a folder';
  } catch (error) {
    if (error instanceof UserError) throw error;
    const closed = closedBySudo(file, 'image load -');
    if (closed !== undefined) throw new UserError(`the file ${file} ${closed}`);
    problem = readProblem(error);
  }
  if (problem !== undefined)
    throw new UserError(`the file ${file} ${problem}: give an archive such as 'docker save' writes`);
}

export async function printImages(dataDir: string, output?: 'json'): Promise<void> {
  sayWhichEngine(dataDir, 'fails');
  const { images, pods } = await readAll(dataDir);
  printLine(output === 'json' ? imagesAsJson(images, pods) : imageTable(images, pods).join('\n'));
}

/**
 * Removes the given tags, the images given by ID or digest, and the images that lose their last name. If one of these images is missing,
 * ambiguous, in use, pinned or the sandbox image, removes nothing and rejects with a UserError.
 */
export async function removeImages(dataDir: string, references: string[]): Promise<void> {
  sayWhichEngine(dataDir, 'fails');
  const removals = await checkedRemovals(dataDir, references).catch((error: unknown) => {
    if (!(error instanceof UserError) || references.length === 1) throw error;
    throw new UserError(`${error.message}; no image was removed`);
  });
  const timers = systemTimers();
  await withRuntime(dataDir, async (connection, signal) => {
    for (const removal of removals) {
      if (removal.kept.length === 0) await removeWholeImage(connection, removal.image.id, timers, signal);
      else for (const name of removal.names) await removeImageName(connection, name, timers, signal);
      printLine(removalLines(removal).join('\n'));
    }
  });
}

async function checkedRemovals(dataDir: string, references: readonly string[]): Promise<Removal[]> {
  const { images, pods } = await readAll(dataDir);
  const removals = planRemovals(images, references, hintsFor({ dataDir }, process.env));
  const { foreign, sandboxImages } = await withRuntime(dataDir, async (connection, signal) => ({
    foreign: await imagesInUse(connection, signal, instanceLabels(dataDir)),
    sandboxImages: [SANDBOX_IMAGE, sandboxImageOf(await readStatus(connection, true, signal)) ?? SANDBOX_IMAGE],
  }));
  for (const removal of removals) refuseUsed(removal, { pods, foreign, sandboxImages });
  return removals;
}

async function readAll(dataDir: string): Promise<{ images: ImageInfo[]; pods: Pod[] }> {
  const images = await withRuntime(dataDir, listImages);
  const client = await engineClient(dataDir);
  const { items } = await client.resource<Pod>(PODS).list();
  return { images, pods: items.filter(isUnfinished) };
}

async function withRuntime<T>(
  dataDir: string,
  use: (connection: Connection, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const connection = connect(await endpointOf(dataDir));
  try {
    return await use(connection, new AbortController().signal);
  } finally {
    connection.close();
  }
}
