/**
 * containerd's garbage collection, now: what a removed container has written stays on the disk until the next one, and removals
 * of containers bring none about. It runs when a lease is deleted by somebody who waits for it.
 */
import type { ContainerRuntime } from '../runtime.ts';
import { type Connection, hasCode } from './connection.ts';

const LEASES = 'containerd.services.leases.v1.Leases';
/** Of an engine that was killed between the two calls there may be one: it is as good. */
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
