/** Distinguishes the processes of this machine or container from those in other containers, and those of root from those of users. */
import { readlinkSync, statSync } from 'node:fs';

/**
 * Returns whether the process has the same PID namespace as this process. Returns true if the namespace cannot be read, for example because
 * the process belongs to another user. On a machine, /proc also has the processes of containers: a lifepod in a container may have the same
 * command line as one on the machine, although its paths belong to another file system. Source: pid_namespaces(7).
 */
export function sharesPids(pid: number): boolean {
  try {
    return readlinkSync(`/proc/${pid}/ns/pid`) === readlinkSync('/proc/self/ns/pid');
  } catch {
    return true;
  }
}

/**
 * Returns whether the process runs with the rights of root, or of the user of this process. Any user can start a process with any command
 * line, so that the command line alone does not show that a process is one of lifepod. A process that is root only in a user namespace of
 * its own has the user ID of its creator. Returns false if the process has ended. Source: user_namespaces(7).
 */
export function runsAsRoot(pid: number): boolean {
  try {
    return isOfRoot(statSync(`/proc/${pid}`).uid);
  } catch {
    return false;
  }
}

/** Returns whether the process may be one of a lifepod on this machine, or in this container: see sharesPids() and runsAsRoot(). */
export const mayBeOwn = (pid: number): boolean => sharesPids(pid) && runsAsRoot(pid);

/** Returns whether the user ID is that of root, or of the user of this process. */
export const isOfRoot = (uid: number): boolean => uid === 0 || uid === process.geteuid?.();
