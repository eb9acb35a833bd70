/**
 * The ServiceAccount: the identity of Pods in the API. The API server implements its token subresource.
 * Source: pkg/registry/core/serviceaccount of v1.33.
 */
import { dns1123SubdomainErrors } from '../../../../machinery/names.ts';
import { validateObjectMeta, validateObjectMetaUpdate } from '../../../../machinery/object-meta.ts';
import type { ServiceAccount } from '../../../generated/types.ts';
import type { KindDefinition } from '../../../kind.ts';
import { ageCell, ageColumn, column, nameColumn } from '../../../table.ts';

/** Drops all fields of the references to Secrets except the names, because the Secrets are always in the account's namespace. */
function keepSecretNames(account: ServiceAccount): void {
  if (account.secrets !== undefined) account.secrets = account.secrets.map(({ name }) => ({ name }));
}

export const serviceAccountKind: KindDefinition<ServiceAccount> = {
  group: '',
  version: 'v1',
  kind: 'ServiceAccount',
  plural: 'serviceaccounts',
  singular: 'serviceaccount',
  shortNames: ['sa'],
  categories: [],
  namespaced: true,
  schema: 'ServiceAccount',
  returnsDeletedObject: true,
  prepareForCreate: keepSecretNames,
  prepareForUpdate: keepSecretNames,
  validateCreate: ({ metadata }) =>
    validateObjectMeta(metadata, { namespaced: true, nameErrors: dns1123SubdomainErrors }),
  validateUpdate: (account, old) => validateObjectMetaUpdate(account.metadata, old.metadata),
  subresources: {
    token: {
      bodyKind: {
        group: 'authentication.k8s.io',
        version: 'v1',
        kind: 'TokenRequest',
        schema: 'AuthenticationV1TokenRequest',
      },
      verbs: ['create'],
    },
  },
  columns: [
    nameColumn,
    column('Secrets', 'The number of Secrets that Pods with the ServiceAccount may use.'),
    ageColumn,
  ],
  row: ({ metadata, secrets = [] }, { now }) => [
    metadata.name,
    secrets.length,
    ageCell(metadata.creationTimestamp, now),
  ],
};
