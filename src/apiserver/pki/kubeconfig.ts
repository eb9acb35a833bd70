import { writeFileAtomic } from '../../platform/files.ts';
import type { Pki } from './pki.ts';

const base64 = (text: string): string => Buffer.from(text).toString('base64');

/**
 * Writes the administrator's kubeconfig (mode 0600, replaced atomically). Cluster, context and user are named lifepod.
 * `server` is a URL such as https://127.0.0.1:6443.
 */
export function writeKubeconfig(path: string, options: { server: string; pki: Pki }): void {
  const { server, pki } = options;
  // Write JSON, which is valid YAML and needs no manual quoting.
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'lifepod', cluster: { server, 'certificate-authority-data': base64(pki.caCertificate) } }],
    users: [
      {
        name: 'lifepod',
        user: {
          'client-certificate-data': base64(pki.admin.certificate),
          'client-key-data': base64(pki.admin.key),
        },
      },
    ],
    contexts: [{ name: 'lifepod', context: { cluster: 'lifepod', user: 'lifepod' } }],
    'current-context': 'lifepod',
  };
  writeFileAtomic(path, `${JSON.stringify(config, undefined, 2)}\n`);
}
