/** Finds the login names of users, for messages. */
import { spawnSync } from 'node:child_process';

/** The time limit of id(1), so that a directory service that does not answer cannot delay a message for longer. */
const TIMEOUT_MILLIS = 5000;

/** Returns the login name of the user, or the UID as text. Runs id(1), which also finds users of directory services. */
export function userName(uid: number): string {
  const { status, stdout } = spawnSync('id', ['-nu', '--', String(uid)], { encoding: 'utf8', timeout: TIMEOUT_MILLIS });
  return status === 0 && stdout.trim() !== '' ? stdout.trim() : String(uid);
}
