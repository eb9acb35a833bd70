/**
 * Reads and creates the keys and certificates of one installation, in <data-dir>/pki.
 *
 * Invariants:
 *  1. A usable certificate and key on disk are kept. The authority keeps its key and its name when it is renewed, so that certificates and
 *     copies of its earlier certificate remain valid.
 *  2. The key that signs ServiceAccount tokens is never replaced, so that issued tokens stay valid.
 *  3. The folder has mode 0700, the files 0600. A key is written before its certificate, so a crash between the two writes leaves a new key
 *     without its certificate, and the pair is recreated.
 */
import { createPrivateKey, generateKeyPairSync, type KeyObject, X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { join } from 'node:path';
import type { Millis } from '../../machinery/time.ts';
import { ensurePrivateFolder, readTextIfPresent, UserError, writeFileAtomic } from '../../platform/files.ts';
import { programPart } from '../../platform/programs/program-part.ts';
import type { CertificateAndKey, LeafRequest } from './certificates.ts';
import { authorityRenewalTime, isDue } from './validity.ts';

const SERVICE_NAMES = [
  'localhost',
  'kubernetes',
  'kubernetes.default',
  'kubernetes.default.svc',
  'kubernetes.default.svc.cluster.local',
];

export interface Pki {
  /** PEM text. */
  caCertificate: string;
  caKey: KeyObject;
  serving: CertificateAndKey;
  /** For the user kubernetes-admin in the group system:masters. */
  admin: CertificateAndKey;
  /** Signs ServiceAccount tokens (ES256). */
  serviceAccountKey: KeyObject;
}

export interface PkiOptions {
  /** DNS names of the serving certificate in addition to localhost and the names of the kubernetes Service. */
  hostnames: readonly string[];
  /** IP addresses of the serving certificate in addition to 127.0.0.1 and ::1. */
  ips: readonly string[];
  /** The lifetime of new certificates other than the certificate of the authority. Absent: a year. */
  lifetimeMillis?: Millis;
  now: Millis;
}

/** Returns the same text for all spellings of an IPv6 address, such as ::1 and 0:0:0:0:0:0:0:1; returns other texts unchanged. */
const canonicalIp = (ip: string): string => (isIP(ip) === 6 ? new URL(`http://[${ip}]`).hostname.slice(1, -1) : ip);

function names(certificate: X509Certificate): Set<string> {
  const found = new Set<string>();
  for (const entry of (certificate.subjectAltName ?? '').split(', ')) {
    if (entry.startsWith('DNS:')) found.add(entry.slice('DNS:'.length));
    if (entry.startsWith('IP Address:')) found.add(canonicalIp(entry.slice('IP Address:'.length)));
  }
  return found;
}

function readPair(folder: string, name: string): CertificateAndKey | undefined {
  const certificate = readTextIfPresent(join(folder, `${name}.crt`));
  const key = readTextIfPresent(join(folder, `${name}.key`));
  return certificate === undefined || key === undefined ? undefined : { certificate, key };
}

function writePair(folder: string, name: string, pair: CertificateAndKey): void {
  writeFileAtomic(join(folder, `${name}.key`), pair.key);
  writeFileAtomic(join(folder, `${name}.crt`), pair.certificate);
}

function matching(pair: CertificateAndKey): X509Certificate | undefined {
  try {
    const certificate = new X509Certificate(pair.certificate);
    return certificate.checkPrivateKey(createPrivateKey(pair.key)) ? certificate : undefined;
  } catch {
    return undefined;
  }
}

function usable(pair: CertificateAndKey, authority: X509Certificate, request: LeafRequest, now: Millis): boolean {
  const certificate = matching(pair);
  if (certificate === undefined || !certificate.verify(authority.publicKey) || isDue(certificate, now)) return false;
  const present = names(certificate);
  const wanted = [...(request.dnsNames ?? []), ...(request.ips ?? [])];
  return present.size === wanted.length && wanted.every((name) => present.has(name));
}

async function loadOrCreateAuthority(folder: string, now: Millis): Promise<CertificateAndKey> {
  const existing = readPair(folder, 'ca');
  const certificate = existing && matching(existing);
  if (existing === undefined || certificate === undefined) {
    const { makeAuthority } = await programPart(() => import('./certificates.ts'));
    const made = await makeAuthority(`lifepod-ca@${Math.floor(now / 1000)}`, now);
    writePair(folder, 'ca', made);
    return made;
  }
  if (!isDue(certificate, now, authorityRenewalTime(certificate))) return existing;
  const { renewAuthority } = await programPart(() => import('./certificates.ts'));
  const authority = { certificate: existing.certificate, key: createPrivateKey(existing.key) };
  const renewed = { certificate: await renewAuthority(authority, now), key: existing.key };
  writePair(folder, 'ca', renewed);
  return renewed;
}

async function loadOrCreateLeaf(
  folder: string,
  name: string,
  authority: CertificateAndKey,
  request: LeafRequest,
  { now, lifetimeMillis }: Pick<PkiOptions, 'now' | 'lifetimeMillis'>,
): Promise<CertificateAndKey> {
  const existing = readPair(folder, name);
  if (existing !== undefined && usable(existing, new X509Certificate(authority.certificate), request, now)) {
    return existing;
  }
  const { makeLeaf } = await programPart(() => import('./certificates.ts'));
  const { certificate } = authority;
  const made = await makeLeaf({ certificate, key: createPrivateKey(authority.key) }, request, now, lifetimeMillis);
  writePair(folder, name, made);
  return made;
}

function loadOrCreateServiceAccountKey(folder: string): KeyObject {
  const path = join(folder, 'sa.key');
  const text = readTextIfPresent(path);
  if (text === undefined) {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    writeFileAtomic(path, privateKey.export({ type: 'pkcs8', format: 'pem' }) as string);
    return privateKey;
  }
  try {
    return createPrivateKey(text);
  } catch {
    throw new UserError(
      `${path} is not a private key: restore the file, or remove it, which invalidates all ServiceAccount tokens`,
    );
  }
}

/**
 * Creates the keys and certificates that are missing or not usable. Rejects with a UserError if the key for ServiceAccount tokens is
 * damaged.
 */
export async function loadOrCreatePki(dataDir: string, options: PkiOptions): Promise<Pki> {
  const folder = join(dataDir, 'pki');
  ensurePrivateFolder(folder);
  const { now } = options;
  const authority = await loadOrCreateAuthority(folder, now);
  const serving = await loadOrCreateLeaf(
    folder,
    'apiserver',
    authority,
    {
      commonName: 'kube-apiserver',
      usage: 'server',
      dnsNames: [...new Set([...SERVICE_NAMES, ...options.hostnames])],
      ips: [...new Set(['127.0.0.1', '::1', ...options.ips.map(canonicalIp)])],
    },
    options,
  );
  const admin = await loadOrCreateLeaf(
    folder,
    'admin',
    authority,
    { commonName: 'kubernetes-admin', organization: 'system:masters', usage: 'client' },
    options,
  );
  return {
    caCertificate: authority.certificate,
    caKey: createPrivateKey(authority.key),
    serving,
    admin,
    serviceAccountKey: loadOrCreateServiceAccountKey(folder),
  };
}
