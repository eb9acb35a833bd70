import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { expect, test } from 'vitest';
import { makeAuthority } from '../../apiserver/pki/certificates.ts';
import {
  type AuthenticationOptions,
  addAuthenticationOptions,
  authenticationFlags,
  authenticationSettings,
  requireIssuer,
  resolveAuthenticationOptions,
} from './authentication-settings.ts';

const parsed = (...args: string[]): AuthenticationOptions =>
  addAuthenticationOptions(new Command().exitOverride().configureOutput({ writeErr: () => undefined }))
    .parse(args, { from: 'user' })
    .opts();
const OIDC = ['--oidc-issuer-url', 'https://id.example', '--oidc-client-id', 'lifepod'];
const oidcOf = (...args: string[]) =>
  authenticationSettings(resolveAuthenticationOptions(parsed(...OIDC, ...args))).oidc;

test('without options there are no further authenticators', () => {
  expect(authenticationSettings(resolveAuthenticationOptions({}))).toEqual({});
});

test('the options of the issuer have the defaults of kube-apiserver', () => {
  expect(oidcOf()).toEqual({
    issuerUrl: 'https://id.example',
    clientId: 'lifepod',
    usernameClaim: 'sub',
    usernamePrefix: 'https://id.example#',
    groupsClaim: undefined,
    groupsPrefix: '',
    requiredClaims: {},
    caPem: undefined,
    signingAlgorithms: ['RS256'],
  });
  expect(oidcOf('--oidc-username-claim', 'email')?.usernamePrefix).toBe('');
  expect(oidcOf('--oidc-username-prefix', '-')?.usernamePrefix).toBe('');
  expect(oidcOf('--oidc-username-prefix', 'x:')?.usernamePrefix).toBe('x:');
  expect(oidcOf('--oidc-required-claim', 'a=b', '--oidc-required-claim', 'c=d,e=f')?.requiredClaims).toEqual({
    a: 'b',
    c: 'd,e=f',
  });
});

test('values are recorded, and passed to an engine in the background', () => {
  const options = parsed(...OIDC, '--oidc-required-claim', 'a=b', '--token-auth-file', '/t.csv');
  const resolved = resolveAuthenticationOptions(options);
  expect(resolveAuthenticationOptions({}, resolved)).toEqual(resolved);
  const args = authenticationFlags(options).flatMap(([flag, value]) => (value === undefined ? [] : [flag, value]));
  expect(parsed(...args)).toEqual(options);
});

test('invalid values are refused', () => {
  const resolve = (options: AuthenticationOptions) => () => resolveAuthenticationOptions(options);
  expect(resolve({ oidcIssuerUrl: 'https://x' })).toThrow(/belong together/);
  expect(resolve({ oidcIssuerUrl: 'http://x', oidcClientId: 'a' })).toThrow(/give an https URL/);
  for (const text of ['https://user:pass@x', 'https://x?a=b', 'https://x#a'])
    expect(resolve({ oidcIssuerUrl: text, oidcClientId: 'a' })).toThrow(/neither a user, a query nor a fragment/);
  expect(resolve({ oidcIssuerUrl: 'https://user:pass@x', oidcClientId: 'a' })).not.toThrow(/pass@/);
  expect(resolve({ oidcSigningAlgs: 'RS256,HS256' })).toThrow(/HS256 is not a known algorithm/);
  expect(() => parsed('--oidc-required-claim', 'a')).toThrow(/CLAIM=VALUE/);
  expect(() => authenticationSettings(resolveAuthenticationOptions({ tokenAuthFile: '/none' }))).toThrow(
    /--token-auth-file \/none does not exist: give a CSV file/,
  );
});

test('options of OpenID Connect need an issuer when they are given, not when they were recorded', () => {
  const resolvedOf = (options: AuthenticationOptions, record: AuthenticationOptions = {}) => {
    const resolved = resolveAuthenticationOptions(options, record);
    requireIssuer(options, resolved);
    return resolved;
  };
  for (const args of [
    ['--oidc-groups-claim', 'groups'],
    ['--oidc-ca-file', '/none'],
    ['--oidc-required-claim', 'a=b'],
  ])
    expect(() => resolvedOf(parsed(...args))).toThrow(
      `${args[0]} needs --oidc-issuer-url and --oidc-client-id: give both, or omit ${args[0]}`,
    );
  const recorded = resolveAuthenticationOptions(parsed(...OIDC, '--oidc-groups-claim', 'groups'));
  const off = parsed('--oidc-issuer-url', '', '--oidc-client-id', '', '--oidc-ca-file', '');
  expect(resolvedOf(off, recorded)).toMatchObject({ oidcIssuerUrl: '', oidcGroupsClaim: 'groups' });
});

test('the token file is read', () => {
  const folder = mkdtempSync(join(tmpdir(), 'lifepod-tokens-'));
  try {
    writeFileSync(join(folder, 't.csv'), 'secret,jane,1,"a,b"\n');
    const options = resolveAuthenticationOptions({ tokenAuthFile: join(folder, 't.csv') });
    expect(authenticationSettings(options).tokenFile?.('secret')).toEqual({
      name: 'jane',
      uid: '1',
      groups: ['a', 'b'],
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('the file with the authorities of the issuer must contain certificates, all of them valid', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'lifepod-authorities-'));
  const path = join(folder, 'ca.crt');
  const readFrom = (text: string) => () => {
    writeFileSync(path, text);
    return oidcOf('--oidc-ca-file', path)?.caPem;
  };
  try {
    expect(() => oidcOf('--oidc-ca-file', path)).toThrow(`--oidc-ca-file ${path} does not exist: give a file with`);
    const { certificate, key } = await makeAuthority('issuer', Date.now());
    expect(readFrom(`${key}${certificate}${certificate}`)()).toContain(certificate);
    expect(readFrom('')).toThrow(/contains no certificate: give a file with certificates in PEM/);
    expect(readFrom(key)).toThrow(/contains no certificate/);
    const malformed = certificate.replace(/\n.{20}/, '\n');
    expect(readFrom(`${certificate}${malformed}`)).toThrow(/certificate 2 in it is malformed/);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
