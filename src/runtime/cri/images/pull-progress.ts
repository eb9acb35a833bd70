/**
 * Reads the progress of pulls from containerd's content store, because CRI does not report the progress. The labels of a pull's manifest
 * contain the repository of the image and the digest of a layer that is being downloaded.
 */
import type { PulledBytes } from '../../runtime.ts';
import { type Connection, hasCode } from '../connection.ts';

const CONTENT = 'containerd.services.content.v1.Content';
const SOURCE_LABEL = 'containerd.io/distribution.source.';
const LAYER_LABEL = 'containerd.io/gc.ref.content.l.';
/** Larger manifests are not read, to limit the use of memory. Manifests are normally much smaller. */
const MAX_MANIFEST_BYTES = 4 * 1024 * 1024;

interface Info {
  digest: string;
  size: number;
  labels: Record<string, string>;
}
interface Manifest {
  layers?: { digest: string; size: number }[];
}

/** Resolves with the progress of pulls by name. `names`: results of storedName(). Omits names whose progress is not known. */
export async function pullProgress(
  connection: Connection,
  names: readonly string[],
  signal: AbortSignal,
): Promise<Map<string, PulledBytes>> {
  const arriving = await arrivingBlobs(connection, signal);
  const found = new Map<string, PulledBytes>();
  if (arriving.size === 0) return found;
  for (const name of names) {
    const bytes = await progressOf(connection, name, arriving, signal);
    if (bytes !== undefined) found.set(name, bytes);
  }
  return found;
}

/** Resolves with the number of downloaded bytes of each layer that is being downloaded, by digest. */
async function arrivingBlobs(connection: Connection, signal: AbortSignal): Promise<Map<string, number>> {
  const { statuses } = await connection.unary<{ statuses: { ref: string; offset: number }[] }>(
    `${CONTENT}/ListStatuses`,
    {},
    signal,
  );
  const blobs = new Map<string, number>();
  for (const { ref, offset } of statuses) {
    const digest = /^layer-(\w+:[0-9a-f]+)$/.exec(ref)?.[1];
    if (digest !== undefined) blobs.set(digest, offset);
  }
  return blobs;
}

async function progressOf(
  connection: Connection,
  name: string,
  arriving: ReadonlyMap<string, number>,
  signal: AbortSignal,
): Promise<PulledBytes | undefined> {
  const [, host = '', repository = ''] = /^([^/]+)\/([^:@]+)/.exec(name) ?? [];
  // containerd omits the port of the registry in the name of this label.
  const label = `${SOURCE_LABEL}${host.replace(/:\d+$/, '')}`;
  const batches = await readAll<{ info: Info[] }>(
    connection,
    'List',
    { filters: [`labels.${JSON.stringify(label)}`] },
    signal,
  );
  const here = batches
    .flatMap(({ info }) => info)
    .filter(({ labels }) => labels[label]?.split(',').includes(repository));
  const manifests = here.filter(({ labels }) =>
    Object.entries(labels).some(([key, digest]) => key.startsWith(LAYER_LABEL) && arriving.has(digest)),
  );
  const [manifest, ...others] = manifests;
  // If several images of one repository are being pulled, it is not known which of the manifests belongs to this name.
  if (manifest === undefined || others.length > 0 || manifest.size > MAX_MANIFEST_BYTES) return undefined;
  const sizes = new Map(here.map(({ digest, size }) => [digest, size]));
  const { layers = [] } = JSON.parse(await readBlob(connection, manifest.digest, signal)) as Manifest;
  return {
    doneBytes: layers.reduce((sum, { digest }) => sum + (arriving.get(digest) ?? sizes.get(digest) ?? 0), 0),
    totalBytes: layers.reduce((sum, { size }) => sum + size, 0),
  };
}

async function readBlob(connection: Connection, digest: string, signal: AbortSignal): Promise<string> {
  const chunks = await readAll<{ data: Buffer }>(connection, 'Read', { digest }, signal);
  return Buffer.concat(chunks.map(({ data }) => data)).toString();
}

async function readAll<Message>(
  connection: Connection,
  method: 'List' | 'Read',
  request: object,
  signal: AbortSignal,
): Promise<Message[]> {
  const messages: Message[] = [];
  const add = (message: Message): void => void messages.push(message);
  // stream() rejects with the code Unavailable when a stream ends normally.
  await connection.stream(`${CONTENT}/${method}`, request, add, signal).catch((error: unknown) => {
    if (!hasCode(error, 'Unavailable')) throw error;
  });
  return messages;
}
