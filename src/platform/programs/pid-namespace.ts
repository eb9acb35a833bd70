/** Distinguishes the processes of this machine or container from processes in other containers. */
import { readlinkSync } from 'node:fs';

/**
 * Returns whether the process has the same PID namespace as this process; true if the namespace cannot be read, as for processes of other
 * users. A machine also lists the processes of its containers: a lifepod in a container may have the same command line as one on the
 * machine, although its paths belong to another file system. Source: pid_namespaces(7).
 */
export function sharesPids(pid: number): boolean {
  try {
    return readlinkSync(`/proc/${pid}/ns/pid`) === readlinkSync('/proc/self/ns/pid');
  } catch {
    return true;
  }
}
