/** Tells processes of this machine, or of this container, from those in the containers on it. */
import { readlinkSync } from 'node:fs';

/**
 * Returns whether the process has the PID namespace of this one. A machine also lists the processes of its containers, whose paths belong to
 * another file system, so that a lifepod in a container may have the command lines of one on the machine. True if it cannot be found out, as
 * for processes of other users. Source: pid_namespaces(7).
 */
export function sharesPids(pid: number): boolean {
  try {
    return readlinkSync(`/proc/${pid}/ns/pid`) === readlinkSync('/proc/self/ns/pid');
  } catch {
    return true;
  }
}
