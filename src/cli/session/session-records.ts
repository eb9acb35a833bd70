/**
 * Keeps the records of the sessions of a data folder, and finds out which sessions are alive.
 *
 * Reads and writes the folder `sessions` of the data folder: the file `gate`, and a file for each session, named after its ID, that lists
 * what the session may have created.
 * Invariants:
 *  1. A session keeps its file locked while it lives. A file without a lock is from a session that was killed or could not delete its
 *     objects.
 *  2. The file names a kind before the session creates an object of it, so that another process can find and delete every object.
 *  3. A session joins and leaves with the gate locked, so that an engine is not stopped while another session begins to use it.
 */
import { randomBytes } from 'node:crypto';
import { existsSync, fstatSync, fsyncSync, ftruncateSync, readdirSync, rmSync, statSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { ResourceRef } from '../../machinery/meta.ts';
import { ensurePrivateFolder, readTextIfPresent } from '../../platform/files.ts';
import { removeIfEmpty } from '../../platform/folders/folders.ts';
import { namingFile } from '../../platform/folders/written-file.ts';
import { isBeingEnded } from '../ending/turns.ts';
import { type FileLock, lockFile, tryLockFile } from './file-locks.ts';

/** An object that a session may have created. */
export interface RecordedObject extends ResourceRef {
  kind: string;
  namespace?: string;
  /** Absent if the server chooses the name. */
  name?: string;
}

export interface SessionRecord {
  id: string;
  pid: number;
  objects: RecordedObject[];
}

export interface OwnRecord extends SessionRecord {
  /** Records the objects that the session is going to create. */
  write(objects: RecordedObject[]): void;
  remove(): void;
  /** Leaves the record to another process, which deletes the objects. */
  abandon(): void;
  /** Returns whether `lifepod down` has removed the record. */
  isRevoked(): boolean;
}

/** Other processes cannot claim the record until remove() or release() is called. */
export interface DeadRecord extends SessionRecord {
  remove(): void;
  release(): void;
}

/** Returns whether `lifepod down` ends, or has ended, the engine of a session. */
export const isEndedByDown = (dataDir: string, record: Pick<OwnRecord, 'isRevoked'>): boolean =>
  record.isRevoked() || isBeingEnded(dataDir);

const GATE = 'gate';
const folderOf = (dataDir: string): string => join(dataDir, 'sessions');
const pathOf = (dataDir: string, id: string): string => join(folderOf(dataDir), id);

const idsIn = (dataDir: string): string[] => {
  try {
    return readdirSync(folderOf(dataDir)).filter((name) => name !== GATE);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
};

/** Waits for the gate and locks it. Rejects if `signal` aborts. */
export async function lockGate(dataDir: string, signal: AbortSignal): Promise<FileLock> {
  const path = pathOf(dataDir, GATE);
  for (;;) {
    ensurePrivateFolder(folderOf(dataDir));
    const lock = await lockFile(path, signal);
    // The session that had locked the gate may have removed it, and another session may have created a new one.
    if (statSync(path, { throwIfNoEntry: false })?.ino === fstatSync(lock.fd).ino) return lock;
    lock.release();
  }
}

/** Removes the gate and its folder; does nothing if records remain. The caller has locked the gate. */
export function removeGate(dataDir: string): void {
  if (idsIn(dataDir).length > 0) return;
  rmSync(pathOf(dataDir, GATE), { force: true });
  removeIfEmpty(folderOf(dataDir));
}

/** Creates and locks the record of a new session of this process. The caller has locked the gate. */
export function createRecord(dataDir: string): OwnRecord {
  const id = randomBytes(5).toString('hex');
  const path = pathOf(dataDir, id);
  const lock = tryLockFile(path, { create: true });
  if (lock === undefined) throw new Error(`another process has locked the new file ${path}`);
  const self: OwnRecord = {
    id,
    pid: process.pid,
    objects: [],
    write(objects) {
      self.objects = objects;
      // The file is overwritten in place, because the lock belongs to the open file.
      const line = `${JSON.stringify({ pid: process.pid, objects })}\n`;
      const written = namingFile(path, () => writeSync(lock.fd, line, 0));
      ftruncateSync(lock.fd, written);
      fsyncSync(lock.fd);
    },
    remove() {
      rmSync(path, { force: true });
      lock.release();
    },
    abandon: lock.release,
    isRevoked: () => readTextIfPresent(path) === undefined,
  };
  self.write([]);
  return self;
}

/** Returns the records of all sessions, dead or alive. A partly written record has no objects. */
export const readRecords = (dataDir: string): SessionRecord[] => idsIn(dataDir).map((id) => readRecord(dataDir, id));

/** Returns whether objects may remain that this process, or a session that was killed, has created. */
export const mayLeaveObjects = (dataDir: string): boolean =>
  readRecords(dataDir).some(
    ({ pid, objects }) => objects.length > 0 && (pid === process.pid || !existsSync(`/proc/${pid}`)),
  );

function readRecord(dataDir: string, id: string): SessionRecord {
  try {
    const { pid, objects } = JSON.parse(readTextIfPresent(pathOf(dataDir, id)) ?? '') as SessionRecord;
    return { id, pid, objects };
  } catch {
    return { id, pid: 0, objects: [] };
  }
}

/** Returns the PID of another running session that may have created the object; undefined if there is none. */
export function sessionOf(dataDir: string, ownId: string, object: RecordedObject): number | undefined {
  const isSame = (each: RecordedObject): boolean =>
    each.group === object.group &&
    each.resource === object.resource &&
    each.namespace === object.namespace &&
    each.name === object.name;
  return readRecords(dataDir).find(
    ({ id, pid, objects }) =>
      // A process that cleans up after a killed session locks the record, but the PID in the record is that of the killed session.
      id !== ownId && objects.some(isSame) && pid > 0 && existsSync(`/proc/${pid}`) && isLocked(dataDir, id),
  )?.pid;
}

function isLocked(dataDir: string, id: string): boolean {
  const path = pathOf(dataDir, id);
  const lock = tryLockFile(path, { create: false });
  lock?.release();
  return lock === undefined && readTextIfPresent(path) !== undefined;
}

export const removeRecord = (dataDir: string, id: string): void => rmSync(pathOf(dataDir, id), { force: true });

/**
 * Locks and returns the records of the sessions that were killed or could not delete their objects. The caller has locked the gate, and
 * must remove or release each record.
 */
export function claimDeadRecords(dataDir: string): DeadRecord[] {
  return idsIn(dataDir).flatMap((id) => {
    const path = pathOf(dataDir, id);
    const lock = tryLockFile(path, { create: false });
    if (lock === undefined) return [];
    const remove = (): void => {
      rmSync(path, { force: true });
      lock.release();
    };
    return [{ ...readRecord(dataDir, id), remove, release: lock.release }];
  });
}

/** Returns whether a session is alive, or another process is deleting what a killed one has left. The caller has locked the gate. */
export function hasLiveSessions(dataDir: string): boolean {
  return idsIn(dataDir).some((id) => isLocked(dataDir, id));
}
