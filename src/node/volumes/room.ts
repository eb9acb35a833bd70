/** How much the files of a Pod's volumes may take: its items can name one value many times. */
import type { Volume } from '../../api/generated/types.ts';
import { isInMemory } from './references.ts';

/** A change that makes it smaller is heard of; trying again before that helps only where `fits` says so. */
export class NoRoomError extends Error {
  override readonly name = 'NoRoomError';
  /** Whether there is room by now. */
  readonly fits: () => boolean;
  constructor(message: string, fits: () => boolean) {
    super(message);
    this.fits = fits;
  }
}

/** Counts the files of all volumes of a Pod by their sizes; those of a volume that cannot follow a change go on counting. */
export interface ShownRoom {
  /** Whether the volume can have these files in place of those that it has. */
  fits(volume: Volume, sizes: readonly number[]): boolean;
  /** Throws a NoRoomError where they do not fit: the volume counts as before then. */
  take(volume: Volume, sizes: readonly number[]): void;
  /** The volume has these files, whether they fit or not. */
  keep(volume: Volume, sizes: readonly number[]): void;
}

const MEBIBYTE = 2 ** 20;
/** The limit of the objects that all volumes of a Pod show, in bytes, and of their files on disk. */
export const MAX_READ_BYTES = 64 * MEBIBYTE;
const MAX_BYTES_IN_MEMORY = 16 * MEBIBYTE;
/** What a file takes beside its content, on disk and in memory. */
const FILE_BYTES = 4096;

const bytesOf = (sizes: readonly number[]): number => sizes.reduce((sum, size) => sum + size + FILE_BYTES, 0);

export function shownRoom(): ShownRoom {
  const disk = { bytes: 0, most: MAX_READ_BYTES, what: '64 MiB of ConfigMaps and its own fields' };
  const memory = { bytes: 0, most: MAX_BYTES_IN_MEMORY, what: '16 MiB of Secrets and projected volumes' };
  const placeOf = (volume: Volume): typeof disk => (isInMemory(volume) ? memory : disk);
  /** Bytes by the name of the volume. */
  const counted = new Map<string, number>();
  const added = ({ name }: Volume, sizes: readonly number[]): number => bytesOf(sizes) - (counted.get(name) ?? 0);
  const fits: ShownRoom['fits'] = (volume, sizes) => {
    const more = added(volume, sizes);
    const { bytes, most } = placeOf(volume);
    return more <= 0 || bytes + more <= most;
  };
  const keep: ShownRoom['keep'] = (volume, sizes) => {
    placeOf(volume).bytes += added(volume, sizes);
    counted.set(volume.name, bytesOf(sizes));
  };
  return {
    fits,
    keep,
    take(volume, sizes) {
      if (fits(volume, sizes)) return keep(volume, sizes);
      const message = `the volumes of a Pod may show at most ${placeOf(volume).what}, and each file counts 4 KiB more than its content`;
      throw new NoRoomError(message, () => fits(volume, sizes));
    },
  };
}
