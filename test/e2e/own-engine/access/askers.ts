/**
 * Asks an API twice whether a user may send a request: by a SubjectAccessReview, and by the request itself, which the administrator sends
 * as the user. The request is a dry run about an object that does not exist, so that it changes nothing.
 */
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { Agent, request } from 'node:https';
import { json } from 'node:stream/consumers';
import { adminOf } from '../../../support/raw-streams.ts';

export interface Asked {
  name: string;
  groups?: readonly string[];
}

interface Parts {
  verb: string;
  path?: string;
  group: string;
  resource: string;
  subresource: string;
  namespace: string;
  name: string;
}

/** The forms are `get pods/log NAMESPACE/NAME`, `list jobs.batch NAMESPACE`, `get nodes /NAME` and `get /path`. */
function partsOf(text: string): Parts {
  const [verb = '', what = '', where = ''] = text.split(' ');
  const [namespace = '', name = ''] = where.split('/');
  const [qualified = '', subresource = ''] = what.split('/');
  const [resource = '', ...group] = qualified.split('.');
  const parts = { verb, group: group.join('.'), resource, subresource, namespace, name };
  return what.startsWith('/') ? { ...parts, path: what } : parts;
}

const METHODS: Record<string, string> = {
  create: 'POST',
  update: 'PUT',
  patch: 'PATCH',
  delete: 'DELETE',
  deletecollection: 'DELETE',
};

function pathOf({ verb, group, resource, subresource, namespace, name }: Parts): string {
  const within = namespace === '' || resource === 'namespaces' ? [] : ['namespaces', namespace];
  const isSelected = verb === 'list' || verb === 'watch';
  const segments = [...within, resource, isSelected ? '' : name, subresource].filter((segment) => segment !== '');
  const query = new URLSearchParams({
    ...(verb in METHODS ? { dryRun: 'All' } : {}),
    ...(verb === 'watch' ? { watch: '1' } : {}),
    ...(isSelected && name !== '' ? { fieldSelector: `metadata.name=${name}` } : {}),
    ...(subresource === 'exec' ? { command: 'true' } : {}),
  });
  return `${group === '' ? '/api/v1' : `/apis/${group}/v1`}/${segments.join('/')}?${query}`;
}

/** The server gives these groups to a user whom the administrator impersonates. */
function groupsOf({ name, groups = [] }: Asked): string[] {
  if (name === 'system:anonymous') return ['system:unauthenticated'];
  const [, namespace] = /^system:serviceaccount:(.*):/.exec(name) ?? [];
  const own = namespace === undefined ? [] : ['system:serviceaccounts', `system:serviceaccounts:${namespace}`];
  return [...groups, ...own, 'system:authenticated'];
}

export interface Asker {
  /** Asks by a SubjectAccessReview. */
  isReviewed(user: Asked, text: string): Promise<boolean>;
  /** Asks by the request itself. Rejects if the status code is 401, or 500 or higher. */
  isSent(user: Asked, text: string): Promise<boolean>;
  close(): void;
}

export function askerOf(kubeconfig: string): Asker {
  const { host, port, ...tls } = adminOf(kubeconfig);
  const agent = new Agent({ ...tls, keepAlive: true, maxSockets: 8 });
  const send = async (method: string, path: string, headers: Record<string, string | string[]>, body = '') => {
    const outgoing = request({ host, port, agent, method, path, headers });
    outgoing.end(body);
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
    return response;
  };
  return {
    async isReviewed(user, text) {
      const { path, ...resourceAttributes } = partsOf(text);
      const asked =
        path === undefined
          ? { resourceAttributes }
          : { nonResourceAttributes: { verb: resourceAttributes.verb, path } };
      const spec = { user: user.name, groups: groupsOf(user), ...asked };
      const review = { apiVersion: 'authorization.k8s.io/v1', kind: 'SubjectAccessReview', spec };
      const url = '/apis/authorization.k8s.io/v1/subjectaccessreviews';
      const response = await send('POST', url, { 'content-type': 'application/json' }, JSON.stringify(review));
      const { status } = (await json(response)) as { status?: { allowed?: boolean } };
      if (status?.allowed === undefined) throw new Error(`the review of "${text}" got ${response.statusCode}`);
      return status.allowed;
    },
    async isSent(user, text) {
      const parts = partsOf(text);
      const method = METHODS[parts.verb] ?? (parts.verb === 'post' ? 'POST' : 'GET');
      const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
      const headers = { 'impersonate-user': user.name, 'impersonate-group': [...(user.groups ?? [])] };
      const response = await send(
        method,
        parts.path ?? pathOf(parts),
        method === 'GET' ? headers : { ...headers, 'content-type': type },
        method === 'GET' || method === 'DELETE' ? '' : '{}',
      );
      const { statusCode: code = 0 } = response;
      if (code !== 403) {
        // The response to a watch does not end by itself.
        if (parts.verb === 'watch') response.destroy();
        else response.resume();
        if (code === 401 || code >= 500) throw new Error(`"${text}" as ${user.name} got ${code}`);
        return true;
      }
      const { message = '' } = (await json(response)) as { message?: string };
      if (!message.includes(`User "${user.name}" cannot `)) throw new Error(`"${text}": ${message}`);
      return false;
    },
    close: () => agent.destroy(),
  };
}
