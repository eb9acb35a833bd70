/**
 * Runs containerd's garbage collection. The data that a removed container has written stays on the disk until the next collection.
 * Removing a container does not itself trigger a collection, but deleting a lease synchronously does.
 */
import type { ContainerRuntime } from '../runtime.ts';
import { type Connection, hasCode } from './connection.ts';

const LEASES = 'containerd.services.leases.v1.Leases';
/** ID of the lease. If an engine was killed between the creation and the deletion, the lease already exists and is reused. */
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
