/**
 * Limits the total size of the files that the node writes into a Pod's volumes. Without a limit, a small Pod could fill the disk, since the
 * items of its volumes can refer to one value many times.
 */
import type { Volume } from '../../api/generated/types.ts';
import { isInMemory } from './references.ts';

/** The files of a volume, or the objects in all volumes of a Pod, exceed their limit. */
export class NoRoomError extends Error {
  override readonly name = 'NoRoomError';
  /** Whether the files fit now because other volumes have become smaller. Always false if the objects exceed their limit. */
  readonly fits: () => boolean;
  constructor(message: string, fits: () => boolean) {
    super(message);
    this.fits = fits;
  }
}

export interface ShownRoom {
  fits(volume: Volume, sizes: readonly number[]): boolean;
  /** Counts these files instead of the volume's previous ones. If they do not fit, throws a NoRoomError and changes nothing. */
  take(volume: Volume, sizes: readonly number[]): void;
  /** Like take(), but counts the files even if they do not fit. */
  keep(volume: Volume, sizes: readonly number[]): void;
}

const MEBIBYTE = 2 ** 20;
/**
 * The limit for the sizes of the Pod's files on disk, in bytes. Also the limit for the values of the objects in all volumes of a Pod, in
 * characters.
 */
export const MAX_READ_BYTES = 64 * MEBIBYTE;
const MAX_BYTES_IN_MEMORY = 16 * MEBIBYTE;
/** Each file counts these bytes in addition to its content, so that the number of files is limited too. */
const FILE_BYTES = 4096;

const bytesOf = (sizes: readonly number[]): number => sizes.reduce((sum, size) => sum + size + FILE_BYTES, 0);

export function shownRoom(): ShownRoom {
  const disk = { bytes: 0, most: MAX_READ_BYTES, what: '64 MiB of ConfigMaps and its own fields' };
  const memory = { bytes: 0, most: MAX_BYTES_IN_MEMORY, what: '16 MiB of Secrets and projected volumes' };
  const placeOf = (volume: Volume): typeof disk => (isInMemory(volume) ? memory : disk);
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
