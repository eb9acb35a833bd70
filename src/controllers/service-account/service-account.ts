/**
 * Keeps a ServiceAccount `default` in every active namespace, for Pods that name no other ServiceAccount.
 *
 * Reads: namespaces, serviceaccounts named default. Writes: serviceaccounts (create).
 * Source: upstream's serviceaccounts_controller (behavior).
 */
import type { ServiceAccount } from '../../api/generated/types.ts';
import { SERVICE_ACCOUNTS } from '../../api/resources.ts';
import type { ControllerOptions } from '../controller.ts';
import { keepInNamespaces } from '../namespace-objects.ts';

const NAME = 'default';

export const startServiceAccountController = (options: ControllerOptions): Promise<void> =>
  keepInNamespaces<ServiceAccount>(options, {
    controller: 'service-account',
    resource: SERVICE_ACCOUNTS,
    name: NAME,
    make: (namespace) => ({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: NAME, namespace } }),
  });
