import { readlinkSync, statSync } from 'node:fs';

/**
 * Returns whether the process has the same PID namespace as this one; true also if its namespace cannot be read, for example because the
 * process belongs to another user. On a machine, /proc also shows the processes of containers. These may have the same command line as a
 * lifepod on the machine, although their paths belong to another file system.
 * Source: pid_namespaces(7).
 */
export function sharesPids(pid: number): boolean {
  try {
    return readlinkSync(`/proc/${pid}/ns/pid`) === readlinkSync('/proc/self/ns/pid');
  } catch {
    return true;
  }
}

/**
 * Returns whether the process runs as root or as the user of this process; false if the process has ended. Any user can start a process
 * with any command line, so the command line alone does not identify a lifepod. A process that is root only in a user namespace has the
 * user ID of its creator.
 * Source: user_namespaces(7).
 */
export function runsAsRoot(pid: number): boolean {
  try {
    return isOfRoot(statSync(`/proc/${pid}`).uid);
  } catch {
    return false;
  }
}

/** Returns whether the process may belong to a lifepod on this machine, or in this container. */
export const mayBeOwn = (pid: number): boolean => sharesPids(pid) && runsAsRoot(pid);

export const isOfRoot = (uid: number): boolean => uid === 0 || uid === process.geteuid?.();
