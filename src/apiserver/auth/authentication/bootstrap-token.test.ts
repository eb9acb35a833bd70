import { expect, test } from 'vitest';
import { SECRETS } from '../../../api/resources.ts';
import { startRegistry } from '../../registry/testing.ts';
import { bootstrapTokens } from './bootstrap-token.ts';
import { createObjectReader } from './bound-objects.ts';

const TOKEN = '07401b.f395accd246ae52d';

async function userWith(
  data: Record<string, string>,
  { type = 'bootstrap.kubernetes.io/token', name = '07401b' } = {},
) {
  const { registry, backend, timers } = await startRegistry();
  await registry.create(SECRETS, 'kube-system', {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: `bootstrap-token-${name}` },
    type,
    stringData: {
      'token-id': '07401b',
      'token-secret': 'f395accd246ae52d',
      'usage-bootstrap-authentication': 'true',
      ...data,
    },
  } as never);
  return bootstrapTokens({ read: createObjectReader(backend), now: timers.now })(TOKEN);
}

test('a bootstrap token authenticates a bootstrapper with the groups of its Secret', async () => {
  expect(await userWith({})).toEqual({ name: 'system:bootstrap:07401b', groups: ['system:bootstrappers'] });
  const extra = 'system:bootstrappers:workers,system:bootstrappers:a';
  expect((await userWith({ 'auth-extra-groups': extra, expiration: '2026-01-01T00:00:01Z' }))?.groups).toEqual([
    'system:bootstrappers',
    'system:bootstrappers:a',
    'system:bootstrappers:workers',
  ]);
});

test.each([
  ['another secret', { 'token-secret': 'f395accd246ae52e' }, {}],
  ['another ID', { 'token-id': '07401c' }, {}],
  ['no usage', { 'usage-bootstrap-authentication': 'yes' }, {}],
  ['a group that is not one of bootstrappers', { 'auth-extra-groups': 'system:masters' }, {}],
  ['an expiration that has passed', { expiration: '2026-01-01T00:00:00Z' }, {}],
  ['an expiration that is not a time', { expiration: 'never' }, {}],
  ['another type', {}, { type: 'Opaque' }],
  ['another name', {}, { name: '07401d' }],
])('a bootstrap token is not valid with %s', async (_, data, secret) => {
  expect(await userWith(data, secret)).toBeUndefined();
});

test('other texts are not bootstrap tokens', async () => {
  const read = () => Promise.reject(new Error('no Secret needs to be read'));
  for (const text of ['', '07401b', 'a.b', `${TOKEN}x`, `../${TOKEN}`, TOKEN.toUpperCase()])
    expect(await bootstrapTokens({ read, now: () => 0 })(text)).toBeUndefined();
});
