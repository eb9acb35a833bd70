/** `lifepod secrets rotate-key`: replaces the key with which the running engine encrypts Secrets in its store. */
import { ROTATE_KEY_PATH, type RotationResult } from '../../apiserver/encryption/serve-rotation.ts';
import { isSilence } from '../../client/silence.ts';
import { isApiError } from '../../machinery/status.ts';
import { UserError } from '../../platform/files.ts';
import { engineClient } from '../kubeconfig/engine-client.ts';
import { requireRunning } from '../kubeconfig/own-kubeconfig.ts';

export async function rotateKey(dataDir: string): Promise<void> {
  requireRunning(dataDir);
  const client = await engineClient(dataDir);
  const response = await client.post(ROTATE_KEY_PATH, new AbortController().signal).catch((error: unknown) => {
    if (!isApiError(error, 'ServiceUnavailable') || isSilence(error)) throw error;
    throw new UserError(
      `the engine stopped before it had replaced the key: its next start continues; see its log ${dataDir}/lifepod.log`,
    );
  });
  const { values } = JSON.parse(response) as RotationResult;
  process.stdout.write(
    `a new key encrypts Secrets: ${values} ${values === 1 ? 'value has' : 'values have'} been encrypted again, and the old key has been removed\n` +
      `back up ${dataDir}/encryption, apart from the rest of the data folder\n`,
  );
}
