/**
 * Adds to each Secret of the type kubernetes.io/service-account-token a token of its ServiceAccount, the certificate of the API's authority
 * and the namespace. Deletes a Secret whose ServiceAccount does not exist, and removes references to deleted Secrets.
 *
 * Reads: secrets of this type, serviceaccounts. Writes: these secrets (update, delete), serviceaccounts (update).
 * Source: upstream's tokens_controller of v1.33 (behavior).
 */
import type { Secret, ServiceAccount } from '../../api/generated/types.ts';
import { SECRETS, SERVICE_ACCOUNTS } from '../../api/resources.ts';
import type { ResourceClient } from '../../client/client.ts';
import { createWorkQueue } from '../../client/work-queue.ts';
import { uidOf } from '../../machinery/meta.ts';
import { isApiError } from '../../machinery/status.ts';
import type { ControllerOptions } from '../controller.ts';

const TYPE = 'kubernetes.io/service-account-token';
const NAME_ANNOTATION = 'kubernetes.io/service-account.name';
const UID_ANNOTATION = 'kubernetes.io/service-account.uid';

export type IssueLegacyToken = (
  namespace: string,
  account: { name: string; uid: string },
  secretName: string,
) => Promise<string>;

const accountNameOf = ({ metadata }: Secret): string => metadata.annotations?.[NAME_ANNOTATION] ?? '';
const accountKeysOf = (secret: Secret): readonly string[] => [`${secret.metadata.namespace}/${accountNameOf(secret)}`];
const referencesOf = ({ metadata, secrets = [] }: ServiceAccount): readonly string[] =>
  secrets.map(({ name }) => `${metadata.namespace}/${name}`);
const base64 = (text: string): string => Buffer.from(text).toString('base64');

interface TokensOptions {
  caPem: string;
  issueLegacyToken: IssueLegacyToken;
}

/** Resolves once the controller has read the Secrets and the ServiceAccounts. */
export async function startServiceAccountTokens({
  client,
  informers,
  timers,
  log,
  signal,
  ...options
}: ControllerOptions & TokensOptions): Promise<void> {
  const written = client.resource<Secret>(SECRETS);
  const accounts = client.resource<ServiceAccount>(SERVICE_ACCOUNTS);
  const queue = createWorkQueue({ name: 'serviceaccount-tokens', process: reconcile, log, timers, signal });
  const add = ({ metadata }: Secret): void => queue.add(`${metadata.namespace}/${metadata.name}`);
  const secrets = informers.follow<Secret>(
    SECRETS,
    { fieldSelector: `type=${TYPE}`, signal },
    { added: add, updated: add, deleted: add },
  );
  const followed = informers.follow<ServiceAccount>(
    SERVICE_ACCOUNTS,
    { signal },
    {
      deleted({ metadata }) {
        for (const secret of secrets.by(accountKeysOf, `${metadata.namespace}/${metadata.name}`)) add(secret);
      },
    },
  );
  await Promise.all([secrets.synced, followed.synced]);

  async function reconcile(key: string): Promise<void> {
    const [namespace = '', name = ''] = key.split('/');
    const secret = secrets.get(namespace, name);
    if (secret === undefined) return removeReferences(namespace, name);
    if (secret.metadata.deletionTimestamp !== undefined) return;
    const account = await accountOf(secret, accounts);
    try {
      if (account === undefined) await written.delete(name, namespace, { preconditions: { uid: uidOf(secret) } });
      else {
        const filled = await fill(secret, account, options);
        if (filled !== undefined) await written.update(filled);
      }
    } catch (error) {
      // The Secret was changed or deleted. The informer receives this change.
      if (!isApiError(error, 'Conflict') && !isApiError(error, 'NotFound')) throw error;
    }
  }

  async function removeReferences(namespace: string, name: string): Promise<void> {
    for (const account of followed.by(referencesOf, `${namespace}/${name}`)) {
      const left = account.secrets?.filter((reference) => reference.name !== name);
      await accounts.update({ ...account, secrets: left }).catch((error: unknown) => {
        if (!isApiError(error, 'NotFound')) throw error;
      });
    }
  }
}

/**
 * Resolves with the ServiceAccount of the Secret; undefined if it does not exist or has another UID. Reads the API, because the informer
 * may not have received the ServiceAccount yet.
 */
async function accountOf(
  secret: Secret,
  accounts: ResourceClient<ServiceAccount>,
): Promise<ServiceAccount | undefined> {
  const uid = secret.metadata.annotations?.[UID_ANNOTATION];
  try {
    const account = await accounts.get(accountNameOf(secret), secret.metadata.namespace);
    return uid === undefined || uid === uidOf(account) ? account : undefined;
  } catch (error) {
    if (isApiError(error, 'NotFound')) return undefined;
    throw error;
  }
}

/** Adds missing data, and replaces an outdated `ca.crt`. Resolves with undefined if the Secret is complete. */
async function fill(
  secret: Secret,
  account: ServiceAccount,
  { caPem, issueLegacyToken }: TokensOptions,
): Promise<Secret | undefined> {
  const { metadata, data = {} } = secret;
  const { namespace = '', name } = metadata;
  const { token, namespace: shown, 'ca.crt': ca } = data;
  const wanted = base64(caPem);
  const uid = uidOf(account);
  if (token && shown && ca === wanted && metadata.annotations?.[UID_ANNOTATION]) return undefined;
  const owner = { name: account.metadata.name, uid };
  return {
    ...secret,
    metadata: { ...metadata, annotations: { ...metadata.annotations, [UID_ANNOTATION]: uid } },
    data: {
      ...data,
      'ca.crt': wanted,
      namespace: shown || base64(namespace),
      token: token || base64(await issueLegacyToken(namespace, owner, name)),
    },
  };
}
