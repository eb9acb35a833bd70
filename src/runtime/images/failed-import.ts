/**
 * Undoes a failed import of an archive. containerd names the images of an archive before it unpacks their layers, so after a
 * failure the names refer to images that cannot run, even if good images had these names before.
 */
import { randomUUID } from 'node:crypto';
import { formatTime } from '../../machinery/time.ts';
import type { Timers } from '../../platform/platform.ts';
import { type Connection, delay, hasCode } from '../cri/connection.ts';
import { imageStatus } from '../cri/images/image-service.ts';

const IMAGES = 'containerd.services.images.v1.Images';
const LEASES = 'containerd.services.leases.v1.Leases';
/** The lease of an import that was killed expires after this time. */
const LEASE_MILLIS = 60 * 60 * 1000;
const POLL_MILLIS = 5;
const SETTLED_WITHIN_MILLIS = 30_000;

interface NamedImage {
  name: string;
  target: { digest: string } | null;
}

export interface ImportGuard {
  /** Gives the names back to the images that had them, and removes them from others; resolves once CRI shows the result. */
  undo(): Promise<void>;
  /** Releases the images that had the names. Must be called in the end. */
  release(): Promise<void>;
}

/** `references`: the names that the import may assign, as the archive and as CRI write them. */
export async function guardImport(
  connection: Connection,
  references: readonly string[],
  timers: Timers,
  signal: AbortSignal,
): Promise<ImportGuard> {
  const before = new Map((await listNames(connection, signal)).map((image) => [image.name, image]));
  const held = references.flatMap((name) => before.get(name)?.target?.digest ?? []);
  const lease = held.length === 0 ? undefined : await hold(connection, new Set(held), timers, signal);
  const listedBefore = new Map<string, string | undefined>();
  for (const name of references) listedBefore.set(name, (await imageStatus(connection, name, signal))?.id);

  const isNew = ({ name, target }: NamedImage): boolean => before.get(name)?.target?.digest !== target?.digest;
  /** The digests of the archive's images, which CRI may also have named by their IDs. */
  const broken = new Set<string | undefined>();
  /** Returns whether there was something to restore. */
  async function restore(): Promise<boolean> {
    const changed = (await listNames(connection, signal)).filter(isNew);
    for (const { name, target } of changed) if (references.includes(name)) broken.add(target?.digest);
    const wrong = changed.filter(({ target }) => broken.has(target?.digest));
    for (const { name } of wrong) {
      const image = before.get(name);
      const undone =
        image === undefined
          ? connection.unary(`${IMAGES}/Delete`, { name, sync: true }, signal)
          : connection.unary(`${IMAGES}/Update`, { image }, signal);
      await undone.catch((error: unknown) => {
        if (!hasCode(error, 'NotFound')) throw error;
      });
    }
    return wrong.length > 0;
  }
  const isSettled = async (): Promise<boolean> => {
    for (const [name, id] of listedBefore) if ((await imageStatus(connection, name, signal))?.id !== id) return false;
    return true;
  };

  return {
    async undo() {
      const deadline = timers.now() + SETTLED_WITHIN_MILLIS;
      // CRI learns of names by events, and may name an image by its ID at any moment until then.
      while ((await restore()) || !(await isSettled())) {
        if (timers.now() > deadline) return;
        await delay(POLL_MILLIS, timers, signal);
      }
    },
    async release() {
      if (lease !== undefined) await connection.unary(`${LEASES}/Delete`, { id: lease }, signal);
    },
  };
}

const listNames = async (connection: Connection, signal: AbortSignal): Promise<NamedImage[]> =>
  (await connection.unary<{ images: NamedImage[] }>(`${IMAGES}/List`, {}, signal)).images;

/** Protects the images from containerd's garbage collection while other images have their names. Returns the ID of the lease. */
async function hold(
  connection: Connection,
  digests: ReadonlySet<string>,
  timers: Timers,
  signal: AbortSignal,
): Promise<string> {
  const id = `lifepod-import-${randomUUID()}`;
  const labels = { 'containerd.io/gc.expire': formatTime(timers.now() + LEASE_MILLIS) };
  await connection.unary(`${LEASES}/Create`, { id, labels }, signal);
  for (const digest of digests)
    await connection.unary(`${LEASES}/AddResource`, { id, resource: { id: digest, type: 'content' } }, signal);
  return id;
}
