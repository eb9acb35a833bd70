/** Serves the path at which `lifepod backup` lets a running engine copy its store. Not a path of upstream. */
import { insufficientStorage, methodNotAllowed } from '../machinery/status.ts';
import { StorageFullError } from '../store/store.ts';
import { sendJson } from './http/answers.ts';
import type { Exchange } from './http/exchange.ts';

export const COPY_STORE_PATH = '/copy-store';

/** Responds to a POST once the copy is on the disk: with 507 if the disk is full. The copy is completed if the client disconnects. */
export async function serveStoreCopy(exchange: Exchange, copyStore: () => Promise<void>): Promise<void> {
  if (exchange.method !== 'POST') throw methodNotAllowed();
  await copyStore().catch((error: unknown) => {
    throw error instanceof StorageFullError ? insufficientStorage(error.message) : error;
  });
  return sendJson(exchange, 200, {});
}
