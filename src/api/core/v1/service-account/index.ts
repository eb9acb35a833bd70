/**
 * The ServiceAccount: who a Pod is to the API. Its token subresource is issued by the API server.
 * Source: pkg/registry/core/serviceaccount of v1.33.
 */
import { dns1123SubdomainErrors } from '../../../../machinery/names.ts';
import { validateObjectMeta, validateObjectMetaUpdate } from '../../../../machinery/object-meta.ts';
import type { ServiceAccount } from '../../../generated/types.ts';
import type { KindDefinition } from '../../../kind.ts';
import { ageCell, ageColumn, column, nameColumn } from '../../../table.ts';

/** A reference to a Secret is its name; it can only be of the same namespace. */
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
  columns: [nameColumn, column('Secrets', 'How many Secrets its Pods are meant to use.'), ageColumn],
  row: ({ metadata, secrets = [] }, { now }) => [
    metadata.name,
    secrets.length,
    ageCell(metadata.creationTimestamp, now),
  ],
};
