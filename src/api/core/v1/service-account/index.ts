/** The ServiceAccount: the identity of Pods in the API. Source: pkg/registry/core/serviceaccount of v1.33. */
import { kind } from '../../../declaration.ts';
import type { ServiceAccount } from '../../../generated/types.ts';
import { ageColumn, column, nameColumn } from '../../../table.ts';

/** Keeps only the names of the Secrets, because all of them are in the account's namespace. */
function keepSecretNames(account: ServiceAccount): void {
  if (account.secrets !== undefined) account.secrets = account.secrets.map(({ name }) => ({ name }));
}

export const serviceAccountKind = kind<ServiceAccount>('v1', 'ServiceAccount', {
  shortNames: ['sa'],
  returnsDeletedObject: true,
  prepareForCreate: keepSecretNames,
  prepareForUpdate: keepSecretNames,
  subresources: {
    token: {
      operation: 'issueToken',
      bodyKind: {
        group: 'authentication.k8s.io',
        version: 'v1',
        kind: 'TokenRequest',
        schema: 'io.k8s.api.authentication.v1.TokenRequest',
      },
      verbs: ['create'],
    },
  },
  columns: [
    nameColumn,
    column(
      'Secrets',
      'The number of Secrets that Pods with the ServiceAccount may use.',
      ({ secrets = [] }) => secrets.length,
    ),
    ageColumn,
  ],
});
