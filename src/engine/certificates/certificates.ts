/** Reads or creates the certificates of the engine at its start, and renews them while it runs. */
import { writeKubeconfig } from '../../apiserver/pki/kubeconfig.ts';
import { loadOrCreatePki, type Pki } from '../../apiserver/pki/pki.ts';
import { keepRenewed } from '../../apiserver/pki/renewal.ts';
import type { ApiServer } from '../../apiserver/server.ts';
import type { Millis } from '../../machinery/time.ts';
import { machineClock } from '../../platform/node-js.ts';
import type { Platform } from '../../platform/platform.ts';
import { certificateNames, HOST, signingMillis } from '../options/api-settings.ts';
import { kubeconfigPath, type Settings } from '../settings.ts';
import { copyKubeconfigs, invokingUser } from './user-kubeconfigs.ts';

/** Creates missing certificates, and renews those that are due. */
export const loadCertificates = (settings: Settings, now: Millis): Promise<Pki> =>
  loadOrCreatePki(settings.dataDir, { ...certificateNames(settings), lifetimeMillis: signingMillis(settings), now });

/**
 * Writes the kubeconfig and the users' copies. While the engine runs, renews the certificates in `pki`, makes the API server use them, and
 * writes the kubeconfigs again.
 */
export function publishCertificates(
  settings: Settings,
  platform: Platform,
  closers: AsyncDisposableStack,
  { api, pki }: { api: ApiServer; pki: Pki },
): void {
  const server = `https://${HOST}:${api.port}`;
  const { dataDir } = settings;
  const publish = (current: Pki): void => {
    writeKubeconfig(kubeconfigPath(dataDir), { server, pki: current });
    copyKubeconfigs(dataDir, invokingUser(process.env), platform.log);
  };
  publish(pki);
  const closing = new AbortController();
  closers.defer(() => closing.abort());
  keepRenewed({
    ...platform,
    pki,
    load: (now) => loadCertificates(settings, now),
    use(renewed) {
      // The components that hold `pki`, such as the certificate authority, must use the renewed certificates, too.
      Object.assign(pki, renewed);
      api.useCertificates(renewed);
      publish(renewed);
    },
    clock: machineClock,
    signal: closing.signal,
  });
}
