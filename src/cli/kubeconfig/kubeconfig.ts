/**
 * `lifepod kubeconfig`: without a user, gives the user who types the command the kubeconfig of the administrator, as `lifepod up` does.
 * With --user, creates a client certificate for another user, who has the rights that RBAC gives and no more.
 *
 * With --user, reads the data folder's kubeconfig and its authority, whose key signs the certificate, and writes only --output. The engine
 * need not run.
 * Source: `kubeadm kubeconfig user` of v1.33 (behavior).
 */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { connect } from 'node:net';
import { join } from 'node:path';
import type { CertificateAndKey } from '../../apiserver/pki/certificates.ts';
import { kubeconfigText } from '../../apiserver/pki/kubeconfig.ts';
import { dateText, expiryOf } from '../../apiserver/pki/validity.ts';
import { readKubeconfig } from '../../client/kubeconfig.ts';
import { lostText } from '../../engine/data-folder/lost-folder.ts';
import { unusableFolder } from '../../engine/data-folder/new-folder.ts';
import { NeedsRootError } from '../../engine/machine-checks.ts';
import { resolveApiOptions, signingMillis } from '../../engine/options/api-settings.ts';
import { kubeconfigPath, readEngineRecord } from '../../engine/settings.ts';
import { dataDirOwner, readTextIfPresent, UserError } from '../../platform/files.ts';
import { machineClock } from '../../platform/node-js.ts';
import { hintsFor } from '../hints.ts';
import { printError } from '../progress/standard-output.ts';
import { notRunning } from '../service/not-running.ts';
import { engineStarted } from './engine-client.ts';
import { engineSilent } from './lost-engine.ts';
import { type NewUser, newUser } from './new-user.ts';
import { grantKubeconfig, isOnlyForRoot, onlyForRoot, ownKubeconfig, printKubeconfig } from './own-kubeconfig.ts';
import { ownerNamed, writePrivateFile } from './private-file.ts';

export interface KubeconfigOptions {
  dataDir: string;
  user?: string;
  group?: string[];
  expires?: string;
  namespace?: string;
  output?: string;
  owner?: string;
  force?: boolean;
}

const OF_USER = ['group', 'expires', 'namespace', 'output', 'owner', 'force'] as const;

export async function kubeconfig(options: KubeconfigOptions): Promise<void> {
  const { dataDir, user } = options;
  if (user !== undefined) return kubeconfigOf({ ...options, user });
  const stray = OF_USER.find((name) => options[name] !== undefined);
  if (stray !== undefined) throw new UserError(`--${stray} is for the kubeconfig of another user: add --user NAME`);
  const path = ownKubeconfig(dataDir);
  if (path !== undefined) {
    await warnIfSilent(path, dataDir);
    return printKubeconfig({ path });
  }
  const refused = onlyForRoot(dataDir, true);
  if (refused !== undefined) throw refused;
  if (dataDirOwner(dataDir) === undefined) {
    throw new UserError(notRunning(dataDir));
  }
  await engineStarted(dataDir);
  printKubeconfig(grantKubeconfig(dataDir));
}

/** Prints a warning if the server of the kubeconfig refuses connections, for example because the engine was killed. */
async function warnIfSilent(path: string, dataDir: string): Promise<void> {
  const { server } = await readKubeconfig(path);
  const { hostname, port } = new URL(server);
  const socket = connect(Number(port), hostname.replace(/^\[|\]$/g, ''));
  const isRefused = await new Promise<boolean>((resolve) => {
    socket.once('connect', () => resolve(false));
    socket.once('error', ({ code }: NodeJS.ErrnoException) => resolve(code === 'ECONNREFUSED'));
  });
  socket.destroy();
  if (isRefused) printError(`warning: ${engineSilent(server, [path], dataDir, process.env)}`);
}

async function kubeconfigOf(options: KubeconfigOptions & { user: string }): Promise<void> {
  const { dataDir, output, owner: ownerName, namespace } = options;
  if (ownerName !== undefined && output === undefined)
    throw new UserError('--owner is for a file: add --output FILE, or omit the option');
  const owner = ownerName === undefined ? undefined : ownerNamed(ownerName);
  if (isOnlyForRoot(dataDir)) throw new NeedsRootError(`read the keys in ${dataDir}`);
  const record = readEngineRecord(dataDir);
  if (record === undefined)
    throw new UserError(
      lostText(dataDir) ??
        unusableFolder(dataDir) ??
        `lifepod has never run in ${dataDir}: start it with '${hintsFor({ dataDir }, process.env).start()}' first`,
    );
  const user = newUser(options, signingMillis(resolveApiOptions({}, record)));
  await engineStarted(dataDir);
  const { server, caPem = '' } = await readKubeconfig(kubeconfigPath(dataDir));
  const credentials = await certified(dataDir, String(caPem), user);
  const text = kubeconfigText({ server, caCertificate: String(caPem), user: user.name, credentials, namespace });
  if (output === undefined) process.stdout.write(text);
  else writePrivateFile(output, text, owner);
  for (const warning of user.warnings) printError(`warning: ${warning}`);
  printError(summaryOf(user, credentials, output));
  if (output !== undefined && owner === undefined && process.geteuid?.() === 0)
    printError(
      `only root can read ${output}: for a user of this machine, remove it, and repeat the command with --owner USER and an --output in a folder of that user`,
    );
}

/**
 * Resolves with a new key and its certificate, signed by the authority of the data folder. Rejects with a UserError if the authority's key
 * is missing.
 */
async function certified(dataDir: string, caPem: string, user: NewUser): Promise<CertificateAndKey> {
  const path = join(dataDir, 'pki', 'ca.key');
  const key = readTextIfPresent(path);
  if (key === undefined)
    throw new UserError(`${path}, the key of the certificate authority, is missing: restore it, or restart lifepod`);
  const { makeLeaf } = await import('../../apiserver/pki/certificates.ts');
  const { name: commonName, groups: organization, lifetimeMillis } = user;
  const authority = { certificate: caPem, key: createPrivateKey(key) };
  return makeLeaf(authority, { commonName, organization, usage: 'client' }, machineClock.now(), lifetimeMillis);
}

function summaryOf({ name, groups }: NewUser, { certificate }: CertificateAndKey, output: string | undefined): string {
  const end = dateText(expiryOf(new X509Certificate(certificate)));
  const member = groups.length === 0 ? '' : ` in the ${groups.length === 1 ? 'group' : 'groups'} ${groups.join(', ')}`;
  const file = output === undefined ? 'the kubeconfig' : output;
  return `${file} is valid for the user ${name}${member} until ${end}, and cannot be revoked; its rights are those of its RoleBindings`;
}
