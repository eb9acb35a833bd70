/**
 * Authenticates nodes that join the cluster. Source: plugin/pkg/auth/authenticator/token/bootstrap and k8s.io/cluster-bootstrap of v1.33.
 */
import { timingSafeEqual } from 'node:crypto';
import type { Secret } from '../../../api/generated/types.ts';
import { SECRETS } from '../../../api/resources.ts';
import { type Millis, parseTime } from '../../../machinery/time.ts';
import type { UserInfo } from '../../../ports/request.ts';
import type { ReadObject } from './credentials.ts';

const TYPE = 'bootstrap.kubernetes.io/token';
const TOKEN = /^([a-z0-9]{6})\.([a-z0-9]{16})$/;
const GROUP = /^system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]$/;
const DEFAULT_GROUP = 'system:bootstrappers';

export function bootstrapTokens({ read, now }: { read: ReadObject; now: () => Millis }) {
  return async (token: string): Promise<UserInfo | undefined> => {
    const [, id = '', value = ''] = TOKEN.exec(token) ?? [];
    if (id === '') return undefined;
    const secret = (await read(SECRETS, 'kube-system', `bootstrap-token-${id}`)) as Secret | undefined;
    if (secret?.type !== TYPE || secret.metadata.deletionTimestamp !== undefined) return undefined;
    const data = (key: string): string => Buffer.from(secret.data?.[key] ?? '', 'base64').toString();
    const isSame = equal(data('token-secret'), value) && data('token-id') === id;
    if (!isSame || data('usage-bootstrap-authentication') !== 'true') return undefined;
    const groups = groupsIn(data('auth-extra-groups'));
    if (groups === undefined || hasExpired(data('expiration'), now())) return undefined;
    return { name: `system:bootstrap:${id}`, groups };
  };
}

function equal(one: string, other: string): boolean {
  const [left, right] = [Buffer.from(one), Buffer.from(other)];
  return left.length === right.length && timingSafeEqual(left, right);
}

/** A token without an expiration never expires. A token whose expiration cannot be parsed has expired. */
const hasExpired = (expiration: string, now: Millis): boolean =>
  expiration !== '' && !(now < (parseTime(expiration) ?? Number.NEGATIVE_INFINITY));

function groupsIn(extra: string): string[] | undefined {
  const groups = extra === '' ? [] : extra.split(',');
  if (!groups.every((group) => GROUP.test(group))) return undefined;
  return [...new Set([DEFAULT_GROUP, ...groups])].sort();
}
