/**
 * Runs containerd's garbage collection. The data that a removed container has written remains on the disk until the next collection. The
 * removal of a container does not start a collection, but the synchronous deletion of a lease does.
 */
import type { ContainerRuntime } from '../runtime.ts';
import { type Connection, hasCode } from './connection.ts';

const LEASES = 'containerd.services.leases.v1.Leases';
/** The lease may exist already, because an engine was killed before it deleted the lease. */
const LEASE = 'lifepod-garbage';

export const garbageCalls = (connection: Connection): Required<Pick<ContainerRuntime, 'collectGarbage'>> => ({
  async collectGarbage(signal) {
    await connection.unary(`${LEASES}/Create`, { id: LEASE }, signal).catch((error: unknown) => {
      if (!hasCode(error, 'AlreadyExists')) throw error;
    });
    await connection.unary(`${LEASES}/Delete`, { id: LEASE, sync: true }, signal).catch((error: unknown) => {
      if (!hasCode(error, 'NotFound')) throw error;
    });
  },
});
