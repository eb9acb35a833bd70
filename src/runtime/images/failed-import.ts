/**
 * Undoes a failed import of an archive. containerd assigns the names in an archive before it unpacks the layers. After a failure, the names
 * therefore refer to images that cannot run, even if working images had these names before.
 */
import { randomUUID } from 'node:crypto';
import { formatTime } from '../../machinery/time.ts';
import type { Timers } from '../../platform/platform.ts';
import { type Connection, delay, hasCode } from '../cri/connection.ts';
import { imageStatus } from '../cri/images/image-service.ts';

/** The service of containerd that assigns names to images. */
export const IMAGES = 'containerd.services.images.v1.Images';
const LEASES = 'containerd.services.leases.v1.Leases';
/** The label with the time at which a lease expires. */
const EXPIRY = 'containerd.io/gc.expire';
/** The lease expires if lifepod does not delete it, for example because lifepod is killed during the import. */
const LEASE_MILLIS = 60 * 60 * 1000;
const POLL_MILLIS = 5;
const SETTLED_WITHIN_MILLIS = 30_000;

interface NamedImage {
  name: string;
  target: { digest: string } | null;
}

export interface ImportGuard {
  /** The ID of the image that CRI showed before the import, by reference; undefined if CRI showed none. */
  idsBefore: ReadonlyMap<string, string | undefined>;
  /**
   * Reassigns the names to the images that had them before the import, and deletes the names of the imported images that did not exist
   * before. Resolves when CRI shows the result, or after about 30 s.
   */
  undo(): Promise<void>;
  /**
   * Ends the protection of the previous images. Must be called after the import, even if the import failed. Never rejects: if the lease
   * cannot be deleted, it expires later.
   */
  release(): Promise<void>;
}

/**
 * Records which images have the names before an import, and protects these images from garbage collection until release(). `references`:
 * the names that the import may assign. `signal` ends only the recording: undo() and release() also run after an abort, because an aborted
 * import must not leave unfinished images.
 */
export async function guardImport(
  connection: Connection,
  references: readonly string[],
  timers: Timers,
  signal: AbortSignal,
): Promise<ImportGuard> {
  const before = new Map((await listNames(connection, signal)).map((image) => [image.name, image]));
  const held = references.flatMap((name) => before.get(name)?.target?.digest ?? []);
  const lease = held.length === 0 ? undefined : await hold(connection, new Set(held), timers, signal);
  const idsBefore = new Map<string, string | undefined>();
  for (const name of references) idsBefore.set(name, (await imageStatus(connection, name, signal))?.id);

  const { signal: unaborted } = new AbortController();
  const isNew = ({ name, target }: NamedImage): boolean => before.get(name)?.target?.digest !== target?.digest;
  /** CRI may have added further names for the imported images: their IDs. */
  const broken = new Set<string | undefined>();
  /** Resolves with whether there were changed names that refer to imported images. */
  async function restore(): Promise<boolean> {
    const changed = (await listNames(connection, unaborted)).filter(isNew);
    for (const { name, target } of changed) if (references.includes(name)) broken.add(target?.digest);
    const wrong = changed.filter(({ target }) => broken.has(target?.digest));
    for (const { name } of wrong) {
      const image = before.get(name);
      const undone =
        image === undefined
          ? connection.unary(`${IMAGES}/Delete`, { name, sync: true }, unaborted)
          : connection.unary(`${IMAGES}/Update`, { image }, unaborted);
      await undone.catch((error: unknown) => {
        if (!hasCode(error, 'NotFound')) throw error;
      });
    }
    return wrong.length > 0;
  }
  const isSettled = async (): Promise<boolean> => {
    for (const [name, id] of idsBefore) if ((await imageStatus(connection, name, unaborted))?.id !== id) return false;
    return true;
  };

  return {
    idsBefore,
    async undo() {
      const deadline = timers.now() + SETTLED_WITHIN_MILLIS;
      // CRI processes new names asynchronously. Until CRI has finished, it may still add an image's ID as another name.
      while ((await restore()) || !(await isSettled())) {
        if (timers.now() > deadline) return;
        await delay(POLL_MILLIS, timers, unaborted);
      }
    },
    async release() {
      if (lease === undefined) return;
      await connection.unary(`${LEASES}/Delete`, { id: lease }, unaborted).catch(() => undefined);
    },
  };
}

/** Lists the names in containerd's namespace of CRI. */
export const listNames = async (connection: Connection, signal: AbortSignal): Promise<NamedImage[]> =>
  (await connection.unary<{ images: NamedImage[] }>(`${IMAGES}/List`, {}, signal)).images;

/** Creates a lease that protects the images from garbage collection, even while other images have their names. Resolves with its ID. */
async function hold(
  connection: Connection,
  digests: ReadonlySet<string>,
  timers: Timers,
  signal: AbortSignal,
): Promise<string> {
  const id = `lifepod-import-${randomUUID()}`;
  const labels = { [EXPIRY]: formatTime(timers.now() + LEASE_MILLIS) };
  await connection.unary(`${LEASES}/Create`, { id, labels }, signal);
  for (const digest of digests)
    await connection.unary(`${LEASES}/AddResource`, { id, resource: { id: digest, type: 'content' } }, signal);
  return id;
}

/**
 * Deletes the leases of loads and pulls that were interrupted, because they keep content on the disk for up to a day. May be called only
 * while no load and no pull runs. Leases that never expire remain: containerd 2 makes one for each sandbox.
 */
export async function deleteLeftLeases(connection: Connection, signal: AbortSignal): Promise<void> {
  const { leases } = await connection.unary<{ leases: { id: string; labels: Record<string, string> }[] }>(
    `${LEASES}/List`,
    {},
    signal,
  );
  const left = leases.filter(({ labels }) => labels[EXPIRY] !== undefined);
  // With `sync`, containerd collects the content at once.
  for (const { id } of left) await connection.unary(`${LEASES}/Delete`, { id, sync: id === left.at(-1)?.id }, signal);
}
