import { describe, expect, it, test } from 'vitest';
import type { Secret } from '../../api/generated/types.ts';
import { credentialsFor } from './credentials.ts';

const base64 = (text: string): string => Buffer.from(text).toString('base64');
const secret = (type: string, key: string, content: unknown): Secret => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: 's' },
  type,
  data: { [key]: base64(typeof content === 'string' ? content : JSON.stringify(content)) },
});
const configJson = (auths: unknown): Secret => secret('kubernetes.io/dockerconfigjson', '.dockerconfigjson', { auths });
const users = (repository: string, ...locations: string[]): string[] =>
  credentialsFor(repository, [
    configJson(Object.fromEntries(locations.map((location) => [location, { username: location, password: 'p' }]))),
  ]).map(({ username }) => username);

describe('matching of a location', () => {
  test.each([
    ['127.0.0.1:5000', '127.0.0.1:5000/team/app', true],
    ['127.0.0.1', '127.0.0.1:5000/team/app', false],
    ['127.0.0.1:5000', '127.0.0.1:5001/team/app', false],
    ['https://example.com', 'example.com/app', true],
    ['http://example.com/', 'example.com/app', true],
    ['https://example.com/v1/', 'example.com/app', true],
    ['https://example.com/v2/team', 'example.com/team/app', true],
    ['example.com/team', 'example.com/team/app', true],
    ['example.com/team', 'example.com/teams', true],
    ['example.com/team', 'example.com/other', false],
    ['*.example.com', 'a.example.com/app', true],
    ['*.example.com', 'a.b.example.com/app', false],
    ['*.example.com', 'example.com/app', false],
    ['*.*.example.com', 'a.b.example.com/app', true],
    ['prefix*.example.com', 'prefix1.example.com/app', true],
    ['*-suffix.example.com', 'a-suffix.example.com/app', true],
    ['r[0-9].example.com', 'r7.example.com/app', true],
    ['r[^0-9].example.com', 'r7.example.com/app', false],
    ['r[0-9.example.com', 'r7.example.com/app', false],
    ['r[^0-9].example.com', 'rx.example.com/app', true],
    ['r[^0-9].example.com', 'r.example.com/app', false],
    ['r[a-c\\-9].example.com', 'r-.example.com/app', true],
    ['r[a-c\\-9].example.com', 'rd.example.com/app', false],
    ['r\\*.example.com', 'r7.example.com/app', false],
    ['*a*b*.example.com', 'xaxxabx.example.com/app', true],
    ['*a*b.example.com', 'xaxxabx.example.com/app', false],
    ['r**.example.com', 'r.example.com/app', true],
    ['r\\', 'r/app', false],
    [`${'*a'.repeat(200)}*b.example.com`, `${'a'.repeat(500)}.example.com/app`, false],
    ['*.example.com:5000/team', 'a.example.com:5000/team/app', true],
    ['example.com', 'exampleXcom/app', false],
    ['[a ].com', 'a.com/app', false],
    [`${'*'.repeat(1024)}.example.com`, 'a.example.com/app', true],
    [`${'*'.repeat(1025)}.example.com`, 'a.example.com/app', false],
    ['https://index.docker.io/v1/', 'docker.io/library/busybox', true],
    ['index.docker.io', 'docker.io/team/app', true],
    ['docker.io', 'docker.io/team/app', true],
    ['https://index.docker.io/v1/', 'example.com/app', false],
  ])('the location %s matches the repository %s: %s', (location, repository, fits) => {
    expect(users(repository, location)).toEqual(fits ? [location] : []);
  });

  it('credentialsFor puts the most specific location first, and uses the default registry only if nothing else matches', () => {
    expect(users('example.com/team/app', 'example.com', 'example.com/team', 'other.com')).toEqual([
      'example.com/team',
      'example.com',
    ]);
    expect(users('docker.io/library/a', 'index.docker.io', 'docker.io/library')).toEqual(['docker.io/library']);
  });
});

describe('reading of secrets', () => {
  it('credentialsFor strips leading and trailing zero bytes of a password', () => {
    const inner = `a${'\0'.repeat(300_000)}b`;
    const auth = base64(`user:\0\0${inner}\0`);
    expect(credentialsFor('example.com/app', [configJson({ 'example.com': { auth } })])).toEqual([
      { username: 'user', password: inner },
    ]);
  });

  it('credentialsFor keeps the order of the secrets for the same location', () => {
    const of = (username: string): Secret => configJson({ 'example.com': { username, password: 'p' } });
    const found = credentialsFor('example.com/app', [of('first'), of('second')]);
    expect(found.map(({ username }) => username)).toEqual(['first', 'second']);
  });

  it('credentialsFor prefers auth to username and password, and allows colons in a password', () => {
    const entry = { username: 'u', password: 'p', auth: base64('user:pass:word\0\0') };
    expect(credentialsFor('example.com/app', [configJson({ 'example.com': entry })])).toEqual([
      { username: 'user', password: 'pass:word' },
    ]);
  });

  it('credentialsFor reads the older type kubernetes.io/dockercfg, which has no auths level', () => {
    const old = secret('kubernetes.io/dockercfg', '.dockercfg', { 'example.com': { username: 'u', password: 'p' } });
    expect(credentialsFor('example.com/app', [old])).toEqual([{ username: 'u', password: 'p' }]);
  });

  it('credentialsFor ignores secrets of other types and without content', () => {
    const other = secret('Opaque', '.dockerconfigjson', { auths: { 'example.com': { username: 'u' } } });
    const empty: Secret = { ...other, type: 'kubernetes.io/dockerconfigjson', data: {} };
    expect(credentialsFor('example.com/app', [other, empty])).toEqual([]);
  });

  test.each([
    ['malformed JSON', '{"auths":{"example.com":{"password":"hunter2"'],
    ['a list of auths', { auths: ['hunter2'] }],
    ['a string as an entry', { auths: { 'example.com': 'hunter2' } }],
    ['auth without a colon', { auths: { 'example.com': { auth: base64('hunter2') } } }],
  ])('credentialsFor refuses a secret with %s without revealing its content', (_, content) => {
    const broken = secret('kubernetes.io/dockerconfigjson', '.dockerconfigjson', content);
    const read = (): unknown => credentialsFor('example.com/app', [broken]);
    expect(read).toThrow(/^the image pull secret "s" cannot be read: /);
    expect(read).not.toThrow(/hunter2/);
  });
});
