/** Generates valid and damaged credentials, each with the user that they identify. */
import fc from 'fast-check';
import type { Impersonation, User } from './oracle.ts';
import type { Planted } from './planted.ts';

type Header = readonly [name: string, value: string];

export const CERTIFICATES: Readonly<Record<string, { organization?: string }>> = {
  jane: {},
  member: { organization: 'team' },
  viewer: {},
  nobody: {},
  proxy: {},
};

export interface Sender {
  /** A key of CERTIFICATES, or 'none'. */
  certificate: string;
  headers: readonly Header[];
  /** The user whom the credentials name; undefined without valid credentials. */
  user: User | undefined;
  hasCredentials: boolean;
  impersonation: Impersonation;
}

interface Credential {
  headers: readonly Header[];
  user?: User;
  /** Whether the headers contain a credential, valid or not. */
  present: boolean;
}

const AUTHENTICATED = 'system:authenticated';
const flipped = (text: string, at: number): string =>
  `${text.slice(0, at)}${text[at] === 'A' ? 'B' : 'A'}${text.slice(at + 1)}`;

const encoded = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');

/** None of the generated forms is valid. */
function damagedToken(token: string): fc.Arbitrary<string> {
  const parts = token.split('.');
  const [head = '', payload = '', signature = ''] = parts;
  const all = fc.constantFrom(
    `${encoded({ alg: 'none' })}.${payload}.`,
    `${encoded({ alg: 'none' })}.${payload}.${signature}`,
    `${encoded({ alg: 'HS256', kid: 'x' })}.${payload}.${signature}`,
    `${encoded({ alg: 'ES256', kid: '../../etc/passwd' })}.${payload}.${signature}`,
    `${encoded({ alg: 'ES256', jwk: {}, jku: 'https://127.0.0.1/', crit: ['x'] })}.${payload}.${signature}`,
    `${head}.${encoded({ sub: 'system:admin', iss: 'https://kubernetes.default.svc.cluster.local' })}.${signature}`,
    `${head}.${payload}`,
    `${head}..${signature}`,
    `${token}.`,
    `${token}.x`,
    token.slice(1),
    token.toUpperCase(),
    '..',
    '.',
    'x',
    'abcdef.0123456789abcdef',
    `${'x'.repeat(4000)}.y.z`,
  );
  const changed = fc
    .tuple(fc.nat(parts.length - 1), fc.double({ min: 0, max: 0.9, noNaN: true }))
    .map(([index, place]) =>
      parts.map((part, at) => (at === index ? flipped(part, Math.floor(part.length * place)) : part)).join('.'),
    );
  return fc.oneof({ weight: 3, arbitrary: all }, { weight: 2, arbitrary: changed }).filter((text) => text !== token);
}

const NO_CREDENTIAL: Credential = { headers: [], present: false };

function authorizationHeader(tokens: Planted['tokens']): fc.Arbitrary<Credential> {
  const of = (value: string, user?: User): Credential => ({
    headers: [['Authorization', value]],
    present: true,
    ...(user === undefined ? {} : { user }),
  });
  const isNone = (value: string): Credential => ({ headers: [['Authorization', value]], present: false });
  return fc.constantFrom(...tokens).chain(({ token, name, groups }) => {
    const user = { name, groups };
    return fc.oneof(
      { weight: 4, arbitrary: fc.constant(NO_CREDENTIAL) },
      {
        weight: 4,
        arbitrary: fc.constantFrom(
          of(`Bearer ${token}`, user),
          of(`bEaReR ${token}`, user),
          of(` Bearer ${token} more`, user),
          {
            ...of(`Bearer ${token}`, user),
            headers: [
              ['authorization', `Bearer ${token}`],
              ['Authorization', 'Bearer x'],
            ] as Header[],
          },
        ),
      },
      { weight: 4, arbitrary: damagedToken(token).map((damaged) => of(`Bearer ${damaged}`)) },
      {
        weight: 2,
        arbitrary: fc.constantFrom(
          isNone(''),
          isNone('Bearer'),
          isNone(`Bearer  ${token}`),
          isNone(`Bearer\t${token}`),
          isNone(token),
          isNone(`Token ${token}`),
          isNone(`Basic ${Buffer.from('root:root').toString('base64')}`),
          isNone('Negotiate x'),
        ),
      },
    );
  });
}

const SUBPROTOCOL = 'base64url.bearer.authorization.k8s.io.';
const WEB_SOCKET: readonly Header[] = [
  ['Upgrade', 'websocket'],
  ['Connection', 'Upgrade'],
  ['Sec-WebSocket-Version', '13'],
  ['Sec-WebSocket-Key', 'AAAAAAAAAAAAAAAAAAAAAA=='],
];

/** The token is in a subprotocol. Most generated values have no such headers. */
function webSocketHeaders(tokens: Planted['tokens']): fc.Arbitrary<Credential> {
  const offering = (protocols: string, user?: User): Credential => ({
    headers: [...WEB_SOCKET, ['Sec-WebSocket-Protocol', protocols]],
    present: true,
    ...(user === undefined ? {} : { user }),
  });
  const none: Credential = { headers: [['Connection', 'close']], present: false };
  return fc.constantFrom(...tokens).chain(({ token, name, groups }) => {
    const protocol = `${SUBPROTOCOL}${Buffer.from(token).toString('base64url')}`;
    return fc.oneof(
      { weight: 6, arbitrary: fc.constant(none) },
      {
        weight: 1,
        arbitrary: fc.constantFrom(
          offering(`${protocol}, v4.channel.k8s.io`, { name, groups }),
          offering(protocol),
          offering(`${protocol}, ${protocol}, v4.channel.k8s.io`),
          offering(`${SUBPROTOCOL}, v4.channel.k8s.io`),
          offering(`${SUBPROTOCOL}_w, v4.channel.k8s.io`),
          offering(`${SUBPROTOCOL}${token}, v4.channel.k8s.io`),
          {
            ...offering(`${protocol}, v4.channel.k8s.io`),
            headers: [
              ['Connection', 'close'],
              ['Sec-WebSocket-Protocol', protocol],
            ] as Header[],
            present: false,
          },
        ),
      },
    );
  });
}

const IGNORED: readonly Header[] = [
  ['X-Remote-User', 'root'],
  ['X-Remote-Group', 'system:masters'],
  ['X-Remote-Extra-Scopes', 'a'],
  ['X-Forwarded-For', '127.0.0.1'],
  ['X-Forwarded-User', 'root'],
  ['X-Forwarded-Uri', '/healthz'],
  ['X-Original-URL', '/healthz'],
  ['X-HTTP-Method-Override', 'GET'],
  ['X-Ssl-Client-Cn', 'root'],
  ['Forwarded', 'for=127.0.0.1'],
  ['Impersonate_User', 'root'],
  ['Impersonate-Other', 'root'],
  ['Audit-ID', '<script>canary'],
  ['Host', 'kubernetes.default.svc'],
  ['Cookie', 'token=x'],
];

/** `proxy` may impersonate most of these users. */
const IMPERSONATED = [
  ...['jane', 'jane', 'nobody', 'system:serviceaccount:default:robot', 'system:serviceaccount:hidden:robot'],
  ...['member', 'system:anonymous', 'system:serviceaccount:hidden', 'system:node:fuzz-node', ''],
];
const someImpersonation: fc.Arbitrary<Impersonation> = fc
  .record({
    user: fc.option(fc.constantFrom(...IMPERSONATED), { nil: undefined, freq: 9 }),
    groups: fc.array(
      fc.constantFrom('team', 'team', 'system:masters', 'system:unauthenticated', 'system:authenticated', ''),
      { maxLength: 2 },
    ),
    uid: fc.option(fc.constantFrom('', '', 'x'), { nil: undefined, freq: 2 }),
    extra: fc.array(fc.constantFrom<[string, string]>(['scopes', 'a'], ['scopes', 'a'], ['scopes', 'b'], ['', 'a']), {
      maxLength: 1,
    }),
  })
  .map(({ user, groups, uid, extra }) => ({
    ...(user === undefined ? {} : { user }),
    groups,
    ...(uid === undefined ? {} : { uid }),
    extra,
  }));

/** `proxy` may impersonate some users, so most of its requests do. */
const impersonationOf = (certificate: string): fc.Arbitrary<Impersonation> =>
  fc.oneof(
    { weight: 5, arbitrary: fc.constant<Impersonation>({ groups: [], extra: [] }) },
    { weight: certificate === 'proxy' ? 25 : 1, arbitrary: someImpersonation },
  );

/** If `odd` is true, the names are in lower case, a second user follows the first one, and keys that begin with `s` are percent-encoded. */
function impersonationHeaders({ user, groups, uid, extra }: Impersonation, odd: boolean): Header[] {
  const name = (text: string): string => (odd ? text.toLowerCase() : text);
  return [
    ...(user === undefined ? [] : [[name('Impersonate-User'), user] as const]),
    // The server must use only the first of several values.
    ...(user !== undefined && odd ? [['Impersonate-User', 'root'] as const] : []),
    ...groups.map((group) => [name('Impersonate-Group'), group] as const),
    ...(uid === undefined ? [] : [[name('Impersonate-Uid'), uid] as const]),
    ...extra.map(([key, value]) => [`Impersonate-Extra-${odd ? key.replace(/^s/, '%73') : key}`, value] as const),
  ];
}

export function hostileSender({ tokens }: Pick<Planted, 'tokens'>): fc.Arbitrary<Sender> {
  const certificates = [...Object.keys(CERTIFICATES), 'viewer', 'proxy', 'none', 'none', 'none'];
  return fc
    .constantFrom(...certificates)
    .chain((certificate) =>
      fc.record({
        certificate: fc.constant(certificate),
        bearer: authorizationHeader(tokens),
        webSocket: webSocketHeaders(tokens),
        ignored: fc.subarray([...IGNORED], { maxLength: 3 }),
        wanted: impersonationOf(certificate),
        odd: fc.boolean(),
      }),
    )
    .map(({ certificate, bearer, webSocket, ignored, wanted, odd }) => {
      const { organization } = CERTIFICATES[certificate] ?? {};
      const groups = [...(organization === undefined ? [] : [organization]), AUTHENTICATED];
      const ofCertificate = certificate === 'none' ? undefined : { name: certificate, groups };
      return {
        certificate,
        headers: [...ignored, ...bearer.headers, ...webSocket.headers, ...impersonationHeaders(wanted, odd)],
        user: ofCertificate ?? bearer.user ?? webSocket.user,
        hasCredentials: certificate !== 'none' || bearer.present || webSocket.present,
        impersonation: wanted,
      };
    });
}
