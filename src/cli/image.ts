/** `lifepod image load`, `list` and `rm`: load, list and remove images in the container runtime of the running engine. */

import { accessSync, constants } from 'node:fs';
import { resolve } from 'node:path';
import type { Pod } from '../api/generated/types.ts';
import { PODS } from '../api/resources.ts';
import { clientFromKubeconfig } from '../client/kubeconfig.ts';
import { instanceLabels, SANDBOX_IMAGE } from '../engine/engine-runtime.ts';
import { kubeconfigPath, readEngineRecord } from '../engine/settings.ts';
import { binarySize } from '../machinery/binary-size.ts';
import { imagesOf, isMeant, isUnfinished } from '../node/images/images-in-use.ts';
import { dataDirOwner, UserError } from '../platform/files.ts';
import { systemTimers } from '../platform/node-js.ts';
import { containerdPaths } from '../runtime/containerd/paths.ts';
import { type Connection, connect } from '../runtime/cri/connection.ts';
import { imagesInUse, listImages, removeImage } from '../runtime/cri/images/image-service.ts';
import { readStatus, sandboxImageOf } from '../runtime/cri/status.ts';
import { type LoadStep, loadImageArchives } from '../runtime/images/load.ts';
import type { ImageInfo } from '../runtime/runtime.ts';
import { tabColumns } from './describe/tab-columns.ts';
import { type Hints, hintsFor, notRunning } from './hints.ts';
import { loadProgress } from './progress/load-progress.ts';
import { STANDARD_INPUT, withArchiveFrom } from './progress/standard-input.ts';
import { terminalLine } from './progress/terminal-line.ts';

const SHORT_ID_LENGTH = 12;

/** Returns the endpoint (unix:///…) of the running engine's container runtime. Throws a UserError if no engine is running. */
function endpointOf(dataDir: string): string {
  if (dataDirOwner(dataDir) === undefined) {
    throw new UserError(notRunning(dataDir));
  }
  return readEngineRecord(dataDir)?.containerRuntimeEndpoint ?? `unix://${containerdPaths(dataDir).socket}`;
}

const printError = (line: string): void => void process.stderr.write(`${line}\n`);

/**
 * Loads the archives into the container runtime and prints the loaded images; `-` is standard input. If a file is not readable, loads none
 * and rejects. Without a terminal, calls `say` with a line about each archive when its load begins.
 */
export async function loadImages(dataDir: string, files: string[], say = printError): Promise<void> {
  const endpoint = endpointOf(dataDir);
  if (files.filter((file) => file === '-').length > 1)
    throw new UserError('standard input can be read only once: give - once');
  for (const file of files.filter((each) => each !== '-')) {
    try {
      accessSync(file, constants.R_OK);
    } catch {
      throw new UserError(
        `the file ${file} does not exist or cannot be read: give an archive such as 'docker save' writes`,
      );
    }
  }
  try {
    await (files.includes('-')
      ? withArchiveFrom(process.stdin, dataDir, terminalLine.show, (path) => loadFiles(endpoint, files, path, say))
      : loadFiles(endpoint, files, '', say));
  } finally {
    terminalLine.show('');
  }
}

/** `inputPath`: the path of the archive that stands for `-`. */
async function loadFiles(
  endpoint: string,
  files: readonly string[],
  inputPath: string,
  say: (line: string) => void,
): Promise<void> {
  const timers = systemTimers();
  const named = loadProgress(terminalLine, say, () => timers.now());
  const progress = (step: LoadStep): void => named(step.file === inputPath ? { ...step, file: STANDARD_INPUT } : step);
  const paths = files.map((file) => (file === '-' ? inputPath : resolve(file)));
  const loaded = await loadImageArchives({ endpoint, timers, progress }, paths, new AbortController().signal);
  terminalLine.show('');
  for (const reference of loaded) process.stdout.write(`loaded ${reference}\n`);
}

/**
 * Prints a line for each tag of each image, or all images as JSON. An image without tags is listed by its digests; if it has none, by its
 * ID.
 */
export async function printImages(dataDir: string, output?: 'json'): Promise<void> {
  const { images, pods } = await readAll(dataDir);
  process.stdout.write(`${output === 'json' ? imagesAsJson(images, pods) : imageTable(images, pods).join('\n')}\n`);
}

const isSandboxImage = ({ tags }: ImageInfo): boolean => tags.includes(SANDBOX_IMAGE);

const usersOf = (image: ImageInfo, pods: readonly Pod[]): Pod[] =>
  pods.filter((pod) => imagesOf(pod).some((reference) => isMeant(image, reference)));

function imageTable(images: readonly ImageInfo[], pods: readonly Pod[]): string[] {
  const rows = images.flatMap((image) => {
    const used = isSandboxImage(image) ? 'all' : String(usersOf(image, pods).length);
    return namesOf(image).map((name) => [name, shortId(image), binarySize(image.sizeBytes), used].join('\t'));
  });
  return tabColumns(['IMAGE\tID\tSIZE\tPODS', ...rows.sort()]);
}

/** Returns `{"images": […]}`, in the order of the table. Each image has the names of the Pods that use it; all Pods use the sandbox image. */
export function imagesAsJson(images: readonly ImageInfo[], pods: readonly Pod[]): string {
  const sorted = [...images].sort((a, b) => ((namesOf(a)[0] ?? '') < (namesOf(b)[0] ?? '') ? -1 : 1));
  const entries = sorted.map((image) => ({
    id: image.id,
    tags: image.tags,
    digests: image.digests,
    sizeBytes: image.sizeBytes,
    isSandboxImage: isSandboxImage(image),
    pods: (isSandboxImage(image) ? pods : usersOf(image, pods)).map(({ metadata: { namespace, name } }) => ({
      namespace,
      name,
    })),
  }));
  return JSON.stringify({ images: entries }, undefined, 2);
}

/**
 * Removes the images with all their names. If one of them is missing, ambiguous, in use, pinned or the sandbox image, removes no image
 * and rejects with a UserError.
 */
export async function removeImages(dataDir: string, references: string[]): Promise<void> {
  const hints = hintsFor({ dataDir }, process.env);
  const { images, pods } = await readAll(dataDir);
  const { foreign, sandboxImages } = await withRuntime(dataDir, async (connection, signal) => ({
    foreign: await imagesInUse(connection, signal, instanceLabels(dataDir)),
    sandboxImages: [SANDBOX_IMAGE, sandboxImageOf(await readStatus(connection, true, signal)) ?? SANDBOX_IMAGE],
  }));
  const wanted = new Set(references.map((reference) => find(images, reference, hints)));
  for (const image of wanted) {
    const [name = ''] = namesOf(image);
    if (sandboxImages.some((reference) => isMeant(image, reference)))
      throw new UserError(`the image ${name} is the sandbox image of every Pod`);
    if (image.pinned) throw new UserError(`the image ${name} is pinned by the container runtime`);
    if (foreign.some((reference) => isMeant(image, reference)))
      throw new UserError(`the image ${name} is used by containers of other programs: remove them first`);
    const users = usersOf(image, pods);
    if (users.length === 0) continue;
    const named = users.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`).join(', ');
    throw new UserError(
      `the image ${name} is used by ${users.length === 1 ? 'the Pod' : 'the Pods'} ${named}: delete ${users.length === 1 ? 'it' : 'them'} first`,
    );
  }
  await withRuntime(dataDir, async (connection, signal) => {
    for (const image of wanted) {
      await removeImage(connection, image.id, signal);
      for (const name of namesOf(image)) process.stdout.write(`removed ${name}\n`);
    }
  });
}

const shortId = ({ id }: ImageInfo): string => id.replace(/^sha256:/, '').slice(0, SHORT_ID_LENGTH);

const namesOf = ({ id, tags, digests }: ImageInfo): string[] =>
  tags.length > 0 ? tags : digests.length > 0 ? digests : [id];

/** Finds an image by name, ID, or at least the first 4 digits of its ID. Throws a UserError if no image or more than one matches. */
function find(images: readonly ImageInfo[], reference: string, hints: Hints): ImageInfo {
  const found = images.filter(
    (image) =>
      isMeant(image, reference) ||
      (/^[0-9a-f]{4,64}$/.test(reference) && image.id.replace(/^sha256:/, '').startsWith(reference)),
  );
  const [image, ...others] = found;
  if (image === undefined)
    throw new UserError(`there is no image ${reference}: '${hints.engine('image list')}' shows all images`);
  if (others.length > 0)
    throw new UserError(
      `${reference} matches ${found.length} images (${found.map(shortId).join(', ')}): give more of the ID`,
    );
  return image;
}

async function readAll(dataDir: string): Promise<{ images: ImageInfo[]; pods: Pod[] }> {
  const images = await withRuntime(dataDir, listImages);
  const client = await clientFromKubeconfig(kubeconfigPath(dataDir));
  const { items } = await client.resource<Pod>(PODS).list();
  return { images, pods: items.filter(isUnfinished) };
}

async function withRuntime<T>(
  dataDir: string,
  use: (connection: Connection, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const connection = connect(endpointOf(dataDir));
  try {
    return await use(connection, new AbortController().signal);
  } finally {
    connection.close();
  }
}
