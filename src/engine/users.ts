/**
 * Defines the users with whose rights the components of the engine call the API. The rights follow from the names and groups of the users.
 * Source: the user names of v1.33's components and the ServiceAccounts of its controllers ("Using RBAC Authorization", core component roles
 * and controller roles). Controllers that only lifepod has are named in the same style.
 */

import type { Client } from '../client/client.ts';
import { clientOf } from '../client/typed-client.ts';
import type { ControllerName } from '../controllers/controller.ts';
import { apiFor } from '../ports/api-for.ts';
import type { ResourceBackend } from '../ports/backend.ts';
import type { UserInfo } from '../ports/request.ts';

const AUTHENTICATED = 'system:authenticated';

export const SCHEDULER: UserInfo = { name: 'system:kube-scheduler', groups: [AUTHENTICATED] };

export const nodeUser = (nodeName: string): UserInfo => ({
  name: `system:node:${nodeName}`,
  groups: ['system:nodes', AUTHENTICATED],
});

const serviceAccount = (name: string): UserInfo => ({
  name: `system:serviceaccount:kube-system:${name}`,
  groups: ['system:serviceaccounts', 'system:serviceaccounts:kube-system', AUTHENTICATED],
});

/** The user of the service proxy, whose Events have the component `kube-proxy`. */
export const PROXY: UserInfo = { name: 'system:kube-proxy', groups: [AUTHENTICATED] };

export const DNS = serviceAccount('kube-dns');

/** The user with whose rights the informers of all controllers read. */
export const CONTROLLER_MANAGER: UserInfo = { name: 'system:kube-controller-manager', groups: [AUTHENTICATED] };

export const controllerUser = (name: ControllerName): UserInfo =>
  name === 'kube-controller-manager' ? CONTROLLER_MANAGER : serviceAccount(name);

export const NETWORK_POLICIES = serviceAccount('network-policy-controller');

export const clientFor = (backend: ResourceBackend, user: UserInfo): Client => clientOf(apiFor(backend, user));
