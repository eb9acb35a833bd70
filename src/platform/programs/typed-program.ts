/** Finds how the user who has typed a command can run lifepod again: a clone, and an npm folder in a home, are often not on the PATH. */
import { realpathSync } from 'node:fs';
import { findProgram } from '../processes.ts';

/** The folders in which sudo searches programs. Source: secure_path of Debian's sudoers(5). */
const SUDO_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/**
 * Returns the word with which `lifepod` is run: its name if the PATH leads to the running program, else the path that was typed, which
 * bin/lifepod passes in LIFEPOD_PROGRAM. With `sudo`, the user will type it after sudo, which has a PATH of its own.
 */
export function typedProgram(env: NodeJS.ProcessEnv, sudo: boolean): string {
  const typed = env['LIFEPOD_PROGRAM'];
  if (!typed) return 'lifepod';
  // In a process that sudo has started, the PATH is already that of sudo.
  const isThroughSudo = env['SUDO_UID'] !== undefined;
  const found = findProgram('lifepod', sudo && !isThroughSudo ? SUDO_PATH : (env['PATH'] ?? ''));
  if (found !== undefined && realPath(found) === realPath(typed)) return 'lifepod';
  return typed.includes('/') ? typed : `./${typed}`;
}

function realPath(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}
