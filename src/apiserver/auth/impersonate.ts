/**
 * Implements impersonation: a sender can send a request as another user if the sender may impersonate this user.
 * Source: WithImpersonation of k8s.io/apiserver/pkg/endpoints/filters of v1.33 (behavior). One difference: headers without a user are a bad
 * request (400) instead of an internal error.
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

/** Matches the user name of a ServiceAccount. The groups are the namespace and the name of the ServiceAccount, which contain no colons. */
const SERVICE_ACCOUNT = /^system:serviceaccount:([^:]+):([^:]+)$/;

/** Whether the headers ask for impersonation. */
export const isImpersonating = (headers: IncomingHttpHeaders): boolean => {
  for (const name in headers) if (name.startsWith('impersonate-')) return true;
  return false;
};

/**
 * Resolves to the user as whom the request is to be handled, which is the sender if the headers request no impersonation. `headers`: all
 * values of each header. Rejects with 403 Forbidden if the sender may not impersonate the user, one of the groups, the UID or one of the
 * extra values, and with 400 BadRequest if the headers contain groups, a UID or extra values, but no user.
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

/** The user that the headers request. */
interface Requested {
  name: string;
  /** The groups of the user; absent if the headers contain none: withSystemGroups() then adds the groups of a ServiceAccount. */
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

/** Decodes the values of a header again: Node.js decodes the bytes of headers as Latin-1, but the names of users are UTF-8. */
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

/**
 * Yields the resources that the sender must be allowed to impersonate: the user or ServiceAccount, the groups, the extra values and the
 * UID.
 */
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
