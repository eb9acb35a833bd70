/**
 * Sends random requests with valid and damaged credentials, impersonations and paths. The server must allow exactly the requests that a
 * simple evaluation of the roles allows, and responses to unauthorized requests must reveal nothing, not even whether an object exists.
 * LIFEPOD_SEED repeats a run, and LIFEPOD_RUNS sets the number of requests.
 */
import type { Agent } from 'node:https';
import { expect, test } from 'vitest';
import { checkAccess } from '../../test/support/access/check-access.ts';
import { CERTIFICATES } from '../../test/support/access/hostile-senders.ts';
import { plant } from '../../test/support/access/planted.ts';
import { createSharedInformers } from '../client/shared-informers.ts';
import { clientOf } from '../client/typed-client.ts';
import { lateAuthorizers } from '../engine/authorization/late-authorizer.ts';
import { followRbac } from '../engine/authorization/rbac-objects.ts';
import { serviceUnavailable } from '../machinery/status.ts';
import { systemTimers } from '../platform/node-js.ts';
import { silentLog } from '../platform/silent-log.ts';
import { createRbac } from './auth/authorization/rbac.ts';
import { createTokenIssuer, TOKEN_ISSUER, type TokenIssuer } from './pki/tokens.ts';
import { startRegistry } from './registry/testing.ts';
import { agentFor, noNodes, startTestServer } from './server-fixture.ts';

const SEED = Number(process.env['LIFEPOD_SEED']);
const RUNS = Number(process.env['LIFEPOD_RUNS'] ?? 300);

const noNode = (): never => {
  throw serviceUnavailable('no node in this test');
};
const nodes = Object.fromEntries(Object.keys(noNodes).map((name) => [name, noNode])) as unknown as typeof noNodes;

test('every request is decided as the roles say, and responses to unauthorized requests contain nothing', async () => {
  const timers = systemTimers();
  const { clients: authorizer, connect } = lateAuthorizers();
  let tokens: TokenIssuer | undefined;
  const issueToken: TokenIssuer['issue'] = (...given) => (tokens as TokenIssuer).issue(...given);
  const { backend, registry } = await startRegistry({ timers, authorizer, issueToken });
  await using at = await startTestServer({ backend, authorizer, nodes });
  tokens = createTokenIssuer(at.pki, TOKEN_ISSUER, timers.now);
  const planted = await plant(async (method, path, body) =>
    at.call(method, path, body === undefined ? {} : { body: JSON.stringify(body) }),
  );
  const end = new AbortController();
  const informers = createSharedInformers({ client: clientOf(registry), timers, log: silentLog });
  const rbac = followRbac({ informers, signal: end.signal });
  await rbac.synced;
  const byRoles = createRbac(rbac);
  connect({ clients: byRoles, components: byRoles });

  const agents = new Map<string, Agent>();
  for (const [name, options] of Object.entries(CERTIFICATES)) agents.set(name, await agentFor(at, name, options));
  const { host, port } = at.server;
  const codes = await checkAccess(
    {
      ...planted,
      addressOf(certificate) {
        const { cert, key } = (agents.get(certificate)?.options ?? {}) as { cert?: string; key?: string };
        return { host, port, ca: at.pki.caCertificate, ...(cert === undefined ? {} : { cert, key }) };
      },
      // Without a node, streams and documents of nodes are unavailable.
      isUpstreams: ({ code, body }) => code === 503 && body.includes('no node in this test'),
      revision: () => registry.revision(),
    },
    { numRuns: RUNS, seed: SEED },
  );
  console.log(`hostile access: seed ${SEED}, responses by status code: ${[...codes].sort().join(' ')}`);
  const countOf = (...wanted: number[]): number => wanted.reduce((sum, code) => sum + (codes.get(code) ?? 0), 0);
  for (const code of [400, 401, 403]) expect(countOf(code), `code ${code}`).toBeGreaterThan(0);
  // About one request in a hundred gets 200, so a run may have none. Other authorized requests get 404 or 405.
  expect(countOf(200, 404, 405)).toBeGreaterThan(0);
  expect(at.errors).toEqual([]);
  end.abort();
  registry.close();
});
