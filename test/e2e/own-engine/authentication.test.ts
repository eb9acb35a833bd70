import { createPrivateKey } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createTokenIssuer, TOKEN_ISSUER } from '../../../src/apiserver/pki/tokens.ts';
import { REPOSITORY } from '../../support/lifepod.ts';
import { pod } from '../../support/manifests.ts';
import { type OidcServer, startOidcServer } from '../../support/oidc-server.ts';
import { lifepod, useOwnEngine } from '../../support/own-engine.ts';

const folder = mkdtempSync(join(tmpdir(), 'lifepod-credentials-'));
const UNAUTHORIZED = /You must be logged in to the server|Unauthorized/;
let issuer: OidcServer;
/** A token that the engine got before it could reach the issuer, and the error with which the engine refused the token. */
let earlyToken: string;
let earlyRefusal: string;

useOwnEngine(async () => {
  issuer = await startOidcServer(['lifepod', 'other']);
  writeFileSync(join(folder, 'issuer.pem'), issuer.caPem);
  writeFileSync(join(folder, 'tokens.csv'), 'file-token,of-the-file,42,"system:masters,readers"\n');
  const oidc = ['--oidc-issuer-url', issuer.url, '--oidc-client-id', 'lifepod', '--oidc-groups-claim', 'groups'];
  const prefixes = ['--oidc-username-prefix', 'oidc:', '--oidc-groups-prefix', 'team:'];
  const checks = ['--oidc-required-claim', 'tenant=lifepod', '--oidc-ca-file', join(folder, 'issuer.pem')];
  return { options: ['--token-auth-file', join(folder, 'tokens.csv'), ...oidc, ...prefixes, ...checks] };
});
beforeAll(async () => {
  const { clusters } = JSON.parse(readFileSync(lifepod.kubeconfig, 'utf8'));
  const contexts = [{ name: 'c', context: { cluster: 'lifepod', user: 'u' } }];
  const config = { apiVersion: 'v1', kind: 'Config', clusters, contexts, 'current-context': 'c', users: [] };
  writeFileSync(join(folder, 'kubeconfig'), JSON.stringify(config));
  earlyToken = await issuer.logIn('jane', 'lifepod');
  issuer.isUp = false;
  earlyRefusal = (await reviewed(earlyToken)).error;
  issuer.isUp = true;
});
afterAll(() => {
  issuer?.close();
  rmSync(folder, { recursive: true });
});

const readConfig = () => JSON.parse(readFileSync(join(folder, 'kubeconfig'), 'utf8'));

const as = (token: string, ...args: string[]) =>
  lifepod.kubectl('--kubeconfig', join(folder, 'kubeconfig'), `--token=${token}`, ...args);
const whoami = async (token: string) => {
  const { stdout, stderr } = await as(token, 'auth', 'whoami', '-o', 'json');
  return stdout === '' ? stderr : JSON.parse(stdout).status.userInfo;
};
/** Only administrators may send this request. */
const refusal = async (token: string): Promise<string> =>
  (await as(token, 'get', '--raw', '/api/v1/namespaces/default/secrets')).stderr;
const createToken = async (...args: string[]): Promise<string> =>
  (await lifepod.kubectlOk('create', 'token', 'default', ...args)).trim();
const reviewed = async (token: string, audiences: string[] = []) => {
  const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token, audiences } };
  const { stdout } = await lifepod.kubectlInput(JSON.stringify(review), 'create', '-f', '-', '-o', 'json');
  return JSON.parse(stdout).status;
};
const claimsOf = (token: string) => JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());

test('kubectl auth whoami shows the administrator of the client certificate', async () => {
  const text = await lifepod.kubectlOk('auth', 'whoami');
  expect(text).toMatch(/^Username +kubernetes-admin$/m);
  expect(text).toMatch(/^Groups +\[system:masters system:authenticated\]$/m);
});

test('a token of kubectl create token authenticates its ServiceAccount, for its audiences and its lifetime', async () => {
  const token = await createToken('--duration=20m');
  expect(claimsOf(token).exp - claimsOf(token).iat).toBe(1200);
  expect(await refusal(token)).toContain('User "system:serviceaccount:default:default" cannot list resource "secrets"');
  const foreign = await createToken('--audience=vault');
  expect(await refusal(foreign)).toMatch(UNAUTHORIZED);
  expect(await reviewed(foreign, ['vault'])).toMatchObject({ authenticated: true, audiences: ['vault'] });
  const shown = await as(token, 'auth', 'whoami');
  expect(shown.stdout).toMatch(/^Username +system:serviceaccount:default:default$/m);
  expect(shown.stdout).toMatch(/^UID +[0-9a-f-]{36}$/m);
  const short = await lifepod.kubectl('create', 'token', 'default', '--duration=5m');
  expect(short.stderr).toContain('may not specify a duration less than 10 minutes');
});

test('an expired token gets 401', async () => {
  const key = createPrivateKey(readFileSync(join(lifepod.dataDir, 'pki/sa.key')));
  const account = await lifepod.get<{ metadata: { uid: string } }>('serviceaccount', 'default');
  const signed = async (agoSeconds: number): Promise<string> => {
    const now = () => Date.now() - agoSeconds * 1000;
    const tokens = createTokenIssuer({ serviceAccountKey: key }, TOKEN_ISSUER, now);
    const of = { name: 'default', uid: account.metadata.uid };
    return (await tokens.issue('default', of, { expirationSeconds: 600 })).status.token;
  };
  expect(await refusal(await signed(500))).toContain('cannot list resource "secrets"');
  expect(await refusal(await signed(700))).toMatch(UNAUTHORIZED);
  expect((await reviewed(await signed(700))).error).toBe('service account token has expired');
});

test('the token of a Pod authenticates, and is refused as soon as the Pod is deleted', async () => {
  await lifepod.apply(pod('holder'));
  await lifepod.wait('--for=condition=Ready', 'pod/holder');
  const path = '/var/run/secrets/kubernetes.io/serviceaccount/token';
  const mounted = (await lifepod.execOk('holder', '--', 'cat', path)).trim();
  const bound = await createToken('--bound-object-kind=Pod', '--bound-object-name=holder');
  const { metadata, spec } = await lifepod.get<{ metadata: { uid: string }; spec: { nodeName: string } }>(
    'pod',
    'holder',
  );
  for (const token of [mounted, bound]) {
    const user = await whoami(token);
    expect(user).toMatchObject({
      username: 'system:serviceaccount:default:default',
      groups: ['system:serviceaccounts', 'system:serviceaccounts:default', 'system:authenticated'],
      extra: {
        'authentication.kubernetes.io/pod-name': ['holder'],
        'authentication.kubernetes.io/pod-uid': [metadata.uid],
        'authentication.kubernetes.io/node-name': [spec.nodeName],
      },
    });
    expect((await reviewed(token)).user).toEqual(user);
  }
  await lifepod.delete('pod', 'holder');
  for (const token of [mounted, bound]) {
    expect(await whoami(token)).toMatch(UNAUTHORIZED);
    expect(await refusal(token)).toMatch(UNAUTHORIZED);
  }
});

test('a token in a Secret authenticates its ServiceAccount until the Secret is deleted', async () => {
  await lifepod.apply({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'legacy', annotations: { 'kubernetes.io/service-account.name': 'default' } },
    type: 'kubernetes.io/service-account-token',
  });
  await lifepod.wait('--for=jsonpath={.data.token}', 'secret/legacy');
  const { data } = await lifepod.get<{ data: Record<string, string> }>('secret', 'legacy');
  const token = Buffer.from(data['token'] ?? '', 'base64').toString();
  expect(Object.keys(data).sort()).toEqual(['ca.crt', 'namespace', 'token']);
  expect(await refusal(token)).toContain('User "system:serviceaccount:default:default" cannot list');
  await lifepod.delete('secret', 'legacy');
  expect(await refusal(token)).toMatch(UNAUTHORIZED);
});

test('a token of the token file authenticates its user', async () => {
  expect(await whoami('file-token')).toEqual({
    username: 'of-the-file',
    uid: '42',
    groups: ['system:masters', 'readers', 'system:authenticated'],
  });
  expect(await whoami('other-token')).toMatch(UNAUTHORIZED);
});

test('a bootstrap token authenticates a bootstrapper until it expires', async () => {
  const create = (id: string, expiration: Date) =>
    lifepod.apply({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: `bootstrap-token-${id}`, namespace: 'kube-system' },
      type: 'bootstrap.kubernetes.io/token',
      stringData: {
        'token-id': id,
        'token-secret': '0123456789abcdef',
        'usage-bootstrap-authentication': 'true',
        expiration: expiration.toISOString(),
      },
    });
  await create('abcdef', new Date(Date.now() + 3_600_000));
  await create('fedcba', new Date(Date.now() - 1000));
  expect(await refusal('abcdef.0123456789abcdef')).toContain('User "system:bootstrap:abcdef" cannot list');
  expect(await whoami('abcdef.0123456789abcdef')).toEqual({
    username: 'system:bootstrap:abcdef',
    groups: ['system:bootstrappers', 'system:authenticated'],
  });
  expect(await refusal('abcdef.0123456789abcdee')).toMatch(UNAUTHORIZED);
  expect(await refusal('fedcba.0123456789abcdef')).toMatch(UNAUTHORIZED);
});

describe('users of an OpenID Connect issuer', () => {
  const refused = async (token: string): Promise<string> => {
    expect(await whoami(token)).toMatch(UNAUTHORIZED);
    return (await reviewed(token)).error;
  };

  test('can log in soon after the issuer is up, for which the engine does not wait', async () => {
    expect(earlyRefusal).toBe('oidc: authenticator not initialized');
    await expect.poll(() => whoami(earlyToken), { timeout: 30_000 }).toMatchObject({ username: 'oidc:jane' });
  });

  test('have the groups of their ID token, and the rights of these groups', async () => {
    await lifepod.kubectlOk('create', 'clusterrolebinding', 'oidc', '--clusterrole=view', '--group=team:viewers');
    const token = await issuer.logIn('jane.viewers.others', 'lifepod');
    expect(await whoami(token)).toMatchObject({
      username: 'oidc:jane.viewers.others',
      groups: ['team:viewers', 'team:others', 'system:authenticated'],
    });
    expect((await as(token, 'get', 'namespaces', '-o', 'name')).stdout).toContain('namespace/default');
    expect(await refusal(token)).toContain('User "oidc:jane.viewers.others" cannot list resource "secrets"');
    const path = join(folder, 'oidc-kubeconfig');
    writeFileSync(path, JSON.stringify({ ...readConfig(), users: [{ name: 'u', user: { token } }] }));
    await lifepod.apply(pod('described'));
    expect(await lifepod.cliOk('describe', 'pod', 'described', '--kubeconfig', path)).toContain('described');
  });

  test('can log in with a credential plugin of kubectl', async () => {
    const program = join(REPOSITORY, 'test/support/oidc-login.ts');
    const args = [program, issuer.url, 'lifepod', 'jane.viewers', join(folder, 'issuer.pem')];
    const apiVersion = 'client.authentication.k8s.io/v1';
    const exec = { apiVersion, command: process.execPath, args, interactiveMode: 'Never' };
    const path = join(folder, 'plugin-kubeconfig');
    writeFileSync(path, JSON.stringify({ ...readConfig(), users: [{ name: 'u', user: { exec } }] }));
    const { stdout, stderr } = await lifepod.kubectl('--kubeconfig', path, 'get', 'namespaces', '-o', 'name');
    expect({ stdout, stderr }).toMatchObject({ stdout: expect.stringContaining('namespace/default'), stderr: '' });
  });

  test('are refused with a token for another client, without a required claim, and after the expiration', async () => {
    expect(await refused(await issuer.logIn('jane', 'other'))).toMatch(/^oidc: verify token: .*"aud"/);
    expect(await refused(await issuer.logIn('stranger', 'lifepod'))).toBe(
      'oidc: required claim tenant not present in ID token',
    );
    const hasty = await issuer.logIn('hasty', 'lifepod');
    await expect
      .poll(async () => (await reviewed(hasty)).error, { timeout: 30_000 })
      .toBe('oidc: verify token: oidc: token is expired');
  });

  test('are known when the issuer has a new key, and while it is down', async () => {
    const before = await issuer.logIn('jane', 'lifepod');
    await issuer.rotateKey();
    const after = await issuer.logIn('jane', 'lifepod');
    expect(await whoami(after)).toMatchObject({ username: 'oidc:jane' });
    expect(await refused(before)).toMatch(/^oidc: verify token: /);
    issuer.isUp = false;
    expect(await whoami(after)).toMatchObject({ username: 'oidc:jane' });
    issuer.isUp = true;
  });
});

test('without credentials, only health and version are served', async () => {
  const { server } = JSON.parse(readFileSync(lifepod.kubeconfig, 'utf8')).clusters[0].cluster;
  const codeOf = async (path: string): Promise<number | undefined> => {
    const sent = request(`${server}${path}`, { rejectUnauthorized: false, agent: false }).end();
    const [response] = await once(sent, 'response');
    response.resume();
    return response.statusCode;
  };
  for (const path of ['/healthz', '/livez', '/readyz', '/version']) expect(await codeOf(path)).toBe(200);
  for (const path of ['/api', '/metrics', '/api/v1/namespaces']) expect(await codeOf(path)).toBe(401);
  const { issuer: name } = JSON.parse(await lifepod.kubectlOk('get', '--raw', '/.well-known/openid-configuration'));
  expect(name).toBe(TOKEN_ISSUER);
});
