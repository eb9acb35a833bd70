/**
 * Allocates disk blocks for LMDB's data file before LMDB needs them.
 *
 * LMDB must never encounter a full disk: an allocation that fails in the middle of a commit can corrupt LMDB's memory or its file. This is
 * possible even if the file system has just reported free space (delayed allocation, the file system's own blocks, other programs).
 * Therefore the file is extended with zeros before a commit if necessary, so that LMDB writes only to blocks that the file already has.
 */
import { statfsSync, statSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { isDiskFull } from '../../platform/folders/written-file.ts';
import type { StoreEvent } from '../store.ts';
import { eventValue } from '../transaction.ts';

const PAGE_BYTES = 4096;
/** Space for the writes that are still possible on a full disk: deletions, and updates that need little space. */
const RESERVE_BYTES = 8 * 1024 * 1024;
/** An update must leave at least this part of the reserve for deletions. */
const UPDATE_LEAVES_BYTES = 2 * 1024 * 1024;
/** A commit with large values may use the end of the file despite free pages, and must leave at least this part of the reserve. */
const LARGE_VALUES_LEAVE_BYTES = 4 * 1024 * 1024;
/** If the free pages exceed the reserve by this many times the size of a commit, enough of them are assumed to be adjacent. */
const MANY_TIMES = 4;
/** The file grows, and its holes are filled, in pieces of this size. Large pieces make growth rare. */
const PIECE_BYTES = 1024 * 1024;

/** Space for the roots of the trees and the paths to the keys, which each commit writes. */
const COMMIT_BYTES = 256 * 1024;
/** LMDB stores a value that is larger than this in separate pages. */
const INLINE_BYTES = 2000;
/** Space for each key: the page with the key, and another page if the first one is split. */
const KEY_BYTES = 2 * PAGE_BYTES;
/** Space for each page of the file: the list of free pages has 8 bytes per page, and LMDB may write the list twice. */
const FREE_LIST_BYTES = 2 * 8;
/**
 * Space for each deleted history record. A small value is enough: old records are adjacent, so many share a page, and the commit reuses its
 * copies of the pages that become empty.
 */
const FORGOTTEN_BYTES = PAGE_BYTES / 16;

/** File systems on which overwriting also allocates new blocks. Sources: the kernel's magic.h; OpenZFS (ZFS_SUPER_MAGIC). */
const COPY_ON_WRITE = new Set([0x9123683e /* btrfs */, 0x2fc12fc1 /* zfs */, 0xca451a4e /* bcachefs */]);

export interface Commit {
  events: readonly StoreEvent[];
  keepsHistory: boolean;
  forgotten: number;
}

const STAT_BLOCK_BYTES = 512;

export interface PageUse {
  /** The number of the last page that LMDB has used. */
  last: number;
  /**
   * Returns the number of free pages up to `last`, which takes longer to read than `last`. LMDB may be unable to use these pages for a
   * large value, which needs adjacent pages.
   */
  free(): number;
}

/** Returns an upper estimate of the number of bytes that the commit can add to the file. */
function commitBytes({ events, keepsHistory, forgotten }: Commit, lastPage: number): number {
  const pagesOf = ({ length } = { length: 0 }): number =>
    length > INLINE_BYTES ? Math.ceil(length / PAGE_BYTES + 1) * PAGE_BYTES : 0;
  let bytes = COMMIT_BYTES + FREE_LIST_BYTES * lastPage + FORGOTTEN_BYTES * forgotten;
  for (const event of events) {
    bytes += KEY_BYTES + pagesOf(eventValue(event)?.value);
    if (keepsHistory) bytes += KEY_BYTES + pagesOf(event.previous?.value);
  }
  return bytes;
}

export class DataFile {
  readonly #path: string;
  readonly #isCopyOnWrite: boolean;
  /** The length of the file. Unless #hasHoles is set, the file has disk blocks for all of it. */
  #bytes: number;
  #hasHoles: boolean;

  constructor(path: string) {
    const { size, blocks } = statSync(path);
    this.#path = path;
    this.#bytes = size;
    this.#hasHoles = blocks * STAT_BLOCK_BYTES < size;
    this.#isCopyOnWrite = COPY_ON_WRITE.has(statfsSync(path).type);
  }

  /**
   * Whether the blocks after the last used page are enough for the commit and for the part of the reserve that must remain, even if LMDB
   * reuses no free page.
   */
  isSafe(commit: Commit, { last }: PageUse): boolean {
    const { events, keepsHistory } = commit;
    const values = events.flatMap((event) => [eventValue(event), keepsHistory ? event.previous : undefined]);
    const isLarge = values.some((kv) => kv !== undefined && kv.value.length > INLINE_BYTES);
    const isUpdate = events.some(({ type }) => type === 'put');
    const leaves = isLarge ? LARGE_VALUES_LEAVE_BYTES : isUpdate ? UPDATE_LEAVES_BYTES : 0;
    return this.#room(last) >= commitBytes(commit, last) + leaves;
  }

  /**
   * Extends the file if necessary. Resolves to false if there is nevertheless no room for the commit and the reserve: the commit may then
   * start only if isSafe() returns true. Many free pages count as room if isSafe() returns true. LMDB must not write to the file until the
   * promise has settled. Rejects if the file cannot be read or written for a reason other than a full disk.
   */
  async makeRoom(commit: Commit, use: PageUse): Promise<boolean> {
    const { last } = use;
    const bytes = commitBytes(commit, last);
    const wanted = bytes + RESERVE_BYTES;
    if (this.#room(last) >= wanted) return true;
    try {
      if (this.#hasHoles) await this.#fillHoles();
      await this.#extend(Math.ceil((firstFree(last) + wanted) / PIECE_BYTES) * PIECE_BYTES);
    } catch (error) {
      if (!isDiskFull(error)) throw error;
    }
    if (this.#room(last) >= wanted) return true;
    // With so many free pages, enough should be adjacent even for large values, so that LMDB does not use the room at the end.
    return use.free() * PAGE_BYTES >= MANY_TIMES * bytes + RESERVE_BYTES && this.isSafe(commit, use);
  }

  /** Returns the bytes after the last used page for which the file has blocks. */
  #room(last: number): number {
    if (this.#hasHoles) return 0;
    const room = this.#bytes - firstFree(last);
    return this.#isCopyOnWrite ? Math.min(room, this.#freeBytes()) : room;
  }

  async #fillHoles(): Promise<void> {
    await using file = await open(this.#path, 'r+');
    const piece = Buffer.alloc(PIECE_BYTES);
    for (let at = 0; at < this.#bytes; ) {
      const { bytesRead } = await file.read(piece, 0, Math.min(PIECE_BYTES, this.#bytes - at), at);
      await writeAll(file, piece.subarray(0, bytesRead), at);
      at += bytesRead;
    }
    await file.datasync();
    this.#hasHoles = false;
  }

  /** On a full disk, extends the file by as many pieces as possible, because even a part of the reserve allows some writes. */
  async #extend(end: number): Promise<void> {
    if (end <= this.#bytes || this.#freeBytes() < PIECE_BYTES) return;
    await using file = await open(this.#path, 'r+');
    const zeros = Buffer.alloc(PIECE_BYTES);
    let at = this.#bytes;
    try {
      for (; at < end; at += PIECE_BYTES) await writeAll(file, zeros, at);
    } catch (error) {
      await file.truncate(at);
      if (!isDiskFull(error)) throw error;
    }
    // A file system with delayed allocation may allocate the blocks only during this call.
    await file.datasync();
    this.#bytes = at;
  }

  #freeBytes(): number {
    const { bfree, bsize } = statfsSync(this.#path);
    return bfree * bsize;
  }
}

const firstFree = (last: number): number => (last + 1) * PAGE_BYTES;

/** A short write is possible on a disk that becomes full. */
async function writeAll(file: FileHandle, bytes: Uint8Array, at: number): Promise<void> {
  for (let written = 0; written < bytes.length; ) {
    const { bytesWritten } = await file.write(bytes, written, bytes.length - written, at + written);
    written += bytesWritten;
  }
}
