/** Distinguishes the processes of this machine or container from processes in other containers. */
import { readlinkSync } from 'node:fs';

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
