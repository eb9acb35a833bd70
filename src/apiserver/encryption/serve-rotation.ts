/** Serves the path at which `lifepod secrets rotate-key` asks a running engine to replace its key. Upstream has no such path. */
import { methodNotAllowed } from '../../machinery/status.ts';
import { sendJson } from '../http/answers.ts';
import type { Exchange } from '../http/exchange.ts';

export const ROTATE_KEY_PATH = '/rotate-encryption-key';

/** The number of values that were encrypted with the new key. */
export interface RotationResult {
  values: number;
}

/**
 * Responds to a POST once the rotation has ended. The rotation continues if the client disconnects. Rejects with 405 for other methods, and
 * with the errors of Encryption.rotateKey().
 */
export async function serveRotation(exchange: Exchange, rotateKey: () => Promise<number>): Promise<void> {
  if (exchange.method !== 'POST') throw methodNotAllowed();
  return sendJson(exchange, 200, { values: await rotateKey() } satisfies RotationResult);
}
