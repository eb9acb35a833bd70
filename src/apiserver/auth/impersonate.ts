/**
 * Source: WithImpersonation of k8s.io/apiserver/pkg/endpoints/filters of v1.33 (behavior). Unlike upstream, refuses impersonation headers
 * that name no user with 400 BadRequest instead of 500 InternalError.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { badRequest } from '../../machinery/status.ts';
import type { Authorizer, ResourceAttributes } from '../../ports/authorizer.ts';
import type { UserInfo } from '../../ports/request.ts';
import { refusal } from './authorize.ts';

type Headers = NodeJS.Dict<string[]>;

const EXTRA_PREFIX = 'impersonate-extra-';
const AUTHENTICATION_GROUP = 'authentication.k8s.io';
const ANONYMOUS = 'system:anonymous';
const AUTHENTICATED = 'system:authenticated';
const UNAUTHENTICATED = 'system:unauthenticated';

/** Captures the namespace and the name, which contain no colons. */
const SERVICE_ACCOUNT = /^system:serviceaccount:([^:]+):([^:]+)$/;

export const isImpersonating = (headers: IncomingHttpHeaders): boolean => {
  for (const name in headers) if (name.startsWith('impersonate-')) return true;
  return false;
};

/**
 * `headers`: all values of each header. Resolves to the sender if the headers request no impersonation. Rejects with 403 Forbidden if the
 * sender may not impersonate the requested user, and with 400 BadRequest if the headers contain groups, a UID or extra values, but no user.
 */
export async function impersonate(authorizer: Authorizer, sender: UserInfo, headers: Headers): Promise<UserInfo> {
  const wanted = requestedUser(headers);
  if (wanted === undefined) return sender;
  for (const what of rightsToBe(wanted)) {
    const attributes = { user: sender, verb: 'impersonate', ...what };
    const { allowed, reason } = await authorizer.authorize(attributes);
    if (!allowed) throw refusal(attributes, reason);
  }
  return withSystemGroups(wanted);
}

interface Requested {
  name: string;
  groups?: readonly string[];
  uid?: string;
  extra: Readonly<Record<string, readonly string[]>>;
}

function requestedUser(headers: Headers): Requested | undefined {
  const [name = ''] = valuesOf(headers['impersonate-user']);
  const groups = valuesOf(headers['impersonate-group']);
  const [uid = ''] = valuesOf(headers['impersonate-uid']);
  const extra = extraOf(headers);
  if (name === '') {
    if (groups.length === 0 && uid === '' && Object.keys(extra).length === 0) return undefined;
    throw badRequest('requested groups, a UID or extra values without impersonating a user');
  }
  return { name, ...(groups.length === 0 ? {} : { groups }), ...(uid === '' ? {} : { uid }), extra };
}

/** Node.js decodes the bytes of headers as Latin-1, but the names of users are UTF-8. */
const valuesOf = (values: readonly string[] = []): string[] =>
  values.map((value) => Buffer.from(value, 'latin1').toString('utf8'));

function extraOf(headers: Headers): Record<string, string[]> {
  const extra = new Map<string, string[]>();
  for (const [header, values] of Object.entries(headers)) {
    if (!header.startsWith(EXTRA_PREFIX)) continue;
    const key = unescaped(header.slice(EXTRA_PREFIX.length));
    extra.set(key, [...(extra.get(key) ?? []), ...valuesOf(values)]);
  }
  return Object.fromEntries(extra);
}

function unescaped(key: string): string {
  try {
    return decodeURIComponent(key);
  } catch {
    return key;
  }
}

type What = Omit<ResourceAttributes, 'user' | 'verb'>;

function* rightsToBe({ name, groups = [], uid, extra }: Requested): Generator<What> {
  const account = SERVICE_ACCOUNT.exec(name);
  yield account === null
    ? { group: '', resource: 'users', name }
    : { group: '', resource: 'serviceaccounts', namespace: account[1], name: account[2] };
  for (const group of groups) yield { group: '', resource: 'groups', name: group };
  for (const [key, values] of Object.entries(extra))
    for (const value of values)
      yield { group: AUTHENTICATION_GROUP, resource: 'userextras', subresource: key, name: value };
  if (uid !== undefined) yield { group: AUTHENTICATION_GROUP, resource: 'uids', name: uid };
}

function withSystemGroups({ name, groups, uid, extra }: Requested): UserInfo {
  const namespace = SERVICE_ACCOUNT.exec(name)?.[1];
  const own = namespace === undefined ? [] : ['system:serviceaccounts', `system:serviceaccounts:${namespace}`];
  const all = [...(groups ?? own)];
  if (name === ANONYMOUS) {
    if (!all.includes(UNAUTHENTICATED)) all.push(UNAUTHENTICATED);
  } else if (!all.includes(AUTHENTICATED) && !all.includes(UNAUTHENTICATED)) {
    all.push(AUTHENTICATED);
  }
  return {
    name,
    ...(uid === undefined ? {} : { uid }),
    groups: all,
    ...(Object.keys(extra).length === 0 ? {} : { extra }),
  };
}
