/**
 * Allocates the blocks of LMDB's data file ahead.
 *
 * LMDB must never run into a full disk: this would happen in the middle of a commit, even if the file system has just reported free
 * space (delayed allocation, the file system's own blocks, other programs), and can corrupt LMDB's memory or its file.
 * So the file is extended with written zeros before a commit, and LMDB writes only into blocks that the file already has.
 *
 * Invariants:
 *  1. The file has no holes while LMDB writes to it.
 *  2. After LMDB's last page, the file has room for the next commit, even if the commit finds no free page.
 */
import { statfsSync, statSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import type { StoreEvent } from '../store.ts';
import { eventValue } from '../transaction.ts';

const PAGE_BYTES = 4096;
/** Space for the writes that continue on a full disk: deletions, and updates that need little space. */
const RESERVE_BYTES = 8 * 1024 * 1024;
/** An update leaves this part of the reserve for deletions. */
const UPDATE_LEAVES_BYTES = 2 * 1024 * 1024;
/** A commit of large values may find too few adjacent free pages. It leaves this part of the reserve for other writes. */
const LARGE_VALUES_LEAVE_BYTES = 4 * 1024 * 1024;
/** If this many times the size of a commit is free within the file, the commit finds enough adjacent free pages. */
const MANY_TIMES = 4;
/** The file grows to a multiple of this size, so that it rarely has to grow. It is read and written in chunks of this size. */
const PIECE_BYTES = 1024 * 1024;

/** A commit also writes the roots of the trees and the paths to its keys. */
const COMMIT_BYTES = 256 * 1024;
/** LMDB stores a larger value in pages of its own. */
const INLINE_BYTES = 2000;
/** The page with the key, and another one if it is split. */
const KEY_BYTES = 2 * PAGE_BYTES;
/** The list of free pages has 8 bytes per page, and LMDB may write it twice. */
const FREE_LIST_BYTES = 2 * 8;
/** Old records are adjacent: the commit reuses the pages that they free. */
const FORGOTTEN_BYTES = PAGE_BYTES / 16;

/** File systems on which overwriting also allocates new blocks. Source: statfs(2), and the kernel's magic.h. */
const COPY_ON_WRITE = new Set([0x9123683e /* btrfs */, 0x2fc12fc1 /* zfs */, 0xca451a4e /* bcachefs */]);

/** The content of a commit. */
export interface Commit {
  events: readonly StoreEvent[];
  /** Whether the history keeps the values that the events replace. */
  keepsHistory: boolean;
  /** The number of history records that the commit removes. */
  forgotten: number;
}

const STAT_BLOCK_BYTES = 512;

/** The pages of LMDB's file. */
export interface PageUse {
  /** The last page that LMDB has used. */
  last: number;
  /** Free pages up to `last`. A large value needs adjacent pages, so LMDB may still append it at the end of the file. */
  free: number;
}

/** The largest number of bytes that a commit adds to the file. */
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
  /** The length of the part of the file that has blocks. */
  #bytes: number;
  #hasHoles: boolean;

  constructor(path: string) {
    const { size, blocks } = statSync(path);
    this.#path = path;
    this.#bytes = size;
    this.#hasHoles = blocks * STAT_BLOCK_BYTES < size;
    this.#isCopyOnWrite = COPY_ON_WRITE.has(statfsSync(path).type);
  }

  /** Whether the file has blocks for the commit even if LMDB finds no free page. */
  isSafe(commit: Commit, { last }: PageUse): boolean {
    const { events, keepsHistory } = commit;
    const values = events.flatMap((event) => [eventValue(event), keepsHistory ? event.previous : undefined]);
    const isLarge = values.some((kv) => kv !== undefined && kv.value.length > INLINE_BYTES);
    const isUpdate = events.some(({ type }) => type === 'put');
    const leaves = isLarge ? LARGE_VALUES_LEAVE_BYTES : isUpdate ? UPDATE_LEAVES_BYTES : 0;
    return this.#room(last) >= commitBytes(commit, last) + leaves;
  }

  /**
   * Makes room for the commit and the reserve. Resolves to false if the disk has too little space. LMDB must not write
   * meanwhile.
   */
  async makeRoom(commit: Commit, { last, free }: PageUse): Promise<boolean> {
    const bytes = commitBytes(commit, last);
    const wanted = bytes + RESERVE_BYTES;
    if (this.#room(last) >= wanted) return true;
    try {
      if (this.#hasHoles) await this.#fillHoles();
      await this.#extend(Math.ceil((firstFree(last) + wanted) / PIECE_BYTES) * PIECE_BYTES);
    } catch (error) {
      if (!isFull(error)) throw error;
    }
    if (this.#room(last) >= wanted) return true;
    // With so many free pages, even large values find adjacent ones: the room at the end of the file remains.
    return free * PAGE_BYTES >= MANY_TIMES * bytes + RESERVE_BYTES && this.isSafe(commit, { last, free });
  }

  /** The number of allocated bytes after the last page. */
  #room(last: number): number {
    if (this.#hasHoles) return 0;
    const room = this.#bytes - firstFree(last);
    return this.#isCopyOnWrite ? Math.min(room, this.#freeBytes()) : room;
  }

  /** Fills the holes by overwriting the file with its own content. */
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

  /** Extends the file as far as the disk has space: even a partial reserve allows some writes. */
  async #extend(end: number): Promise<void> {
    if (end <= this.#bytes || this.#freeBytes() < PIECE_BYTES) return;
    await using file = await open(this.#path, 'r+');
    const zeros = Buffer.alloc(PIECE_BYTES);
    let at = this.#bytes;
    try {
      for (; at < end; at += PIECE_BYTES) await writeAll(file, zeros, at);
    } catch (error) {
      await file.truncate(at);
      if (!isFull(error)) throw error;
    }
    // With delayed allocation the file system allocates the blocks only now.
    await file.datasync();
    this.#bytes = at;
  }

  #freeBytes(): number {
    const { bfree, bsize } = statfsSync(this.#path);
    return bfree * bsize;
  }
}

const isFull = (error: unknown): boolean => ['ENOSPC', 'EDQUOT'].includes((error as NodeJS.ErrnoException).code ?? '');

const firstFree = (last: number): number => (last + 1) * PAGE_BYTES;

/** Continues after a short write, which can happen on a disk that becomes full. */
async function writeAll(file: FileHandle, bytes: Uint8Array, at: number): Promise<void> {
  for (let written = 0; written < bytes.length; ) {
    const { bytesWritten } = await file.write(bytes, written, bytes.length - written, at + written);
    written += bytesWritten;
  }
}
