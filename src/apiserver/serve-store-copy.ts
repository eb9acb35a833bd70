/** Serves the path at which `lifepod backup` asks a running engine to copy its store. Upstream has no such path. */
import { insufficientStorage, methodNotAllowed } from '../machinery/status.ts';
import { StorageFullError } from '../store/store.ts';
import { sendJson } from './http/answers.ts';
import type { Exchange } from './http/exchange.ts';

export const COPY_STORE_PATH = '/copy-store';

/**
 * Responds to a POST once the copy is on the disk. Rejects with 507 if the disk is full, and with 405 for other methods. If the client
 * disconnects, the copy continues.
 */
export async function serveStoreCopy(exchange: Exchange, copyStore: () => Promise<void>): Promise<void> {
  if (exchange.method !== 'POST') throw methodNotAllowed();
  await copyStore().catch((error: unknown) => {
    throw error instanceof StorageFullError ? insufficientStorage(error.message) : error;
  });
  return sendJson(exchange, 200, {});
}
