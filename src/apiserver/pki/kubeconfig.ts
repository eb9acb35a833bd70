import { writeFileAtomic } from '../../platform/files.ts';
import type { CertificateAndKey } from './certificates.ts';
import type { Pki } from './pki.ts';

const base64 = (text: string): string => Buffer.from(text).toString('base64');

export interface Kubeconfig {
  /** Such as https://127.0.0.1:6443. */
  server: string;
  /** PEM text. */
  caCertificate: string;
  user: string;
  credentials: CertificateAndKey;
  /** The namespace for commands that name no namespace. Absent: default. */
  namespace?: string | undefined;
}

export function kubeconfigText({ server, caCertificate, user, credentials, namespace }: Kubeconfig): string {
  // JSON is valid YAML and needs no manual quoting.
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'lifepod', cluster: { server, 'certificate-authority-data': base64(caCertificate) } }],
    users: [
      {
        name: user,
        user: {
          'client-certificate-data': base64(credentials.certificate),
          'client-key-data': base64(credentials.key),
        },
      },
    ],
    contexts: [
      { name: 'lifepod', context: { cluster: 'lifepod', user, ...(namespace === undefined ? {} : { namespace }) } },
    ],
    'current-context': 'lifepod',
  };
  return `${JSON.stringify(config, undefined, 2)}\n`;
}

/** Writes the administrator's kubeconfig (mode 0600, replaced atomically). */
export function writeKubeconfig(path: string, { server, pki }: { server: string; pki: Pki }): void {
  const { caCertificate, admin: credentials } = pki;
  writeFileAtomic(path, kubeconfigText({ server, caCertificate, user: 'lifepod', credentials }));
}
