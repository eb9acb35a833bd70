import { spawnSync } from 'node:child_process';

/** A directory service may not answer, and must not delay a message for longer. */
const TIMEOUT_MILLIS = 5000;

/** Returns the login name, or the UID as text. Runs id(1), because it also finds users of directory services. */
export function userName(uid: number): string {
  const { status, stdout } = spawnSync('id', ['-nu', '--', String(uid)], { encoding: 'utf8', timeout: TIMEOUT_MILLIS });
  return status === 0 && stdout.trim() !== '' ? stdout.trim() : String(uid);
}
