import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { hostileRequest } from '../../test/support/hostile-requests.ts';
import { createRbac } from './auth/authorization/rbac.ts';
import { rbacObjects } from './auth/authorization/rbac-fixture.ts';
import { agentFor, readText, startTestServer } from './server-fixture.ts';

const OPEN = /^\/(healthz|livez|readyz|version)(\/|\?|$)/;

test('a user without rights gets 403 for every request but those for health and version, and changes nothing', async () => {
  await using at = await startTestServer({ authorizer: createRbac(rbacObjects()) });
  const agent = await agentFor(at, 'nobody');
  onTestFinished(() => agent.destroy());
  const before = at.api.store.revision();
  const refused = new Set<number>();
  await fc.assert(
    fc.asyncProperty(hostileRequest, async ({ method, path, headers, body }) => {
      const response = await at.open(method, path, { body: Buffer.from(body, 'latin1'), headers, agent });
      const text = await readText(response);
      const code = response.statusCode ?? 0;
      refused.add(code);
      if (OPEN.test(path)) return;
      // 400: the path or the headers are not valid. 401: a token in the headers is not valid. 431: the head of the request is too large.
      expect([400, 401, 403, 431], `${method} ${path.slice(0, 300)}: ${text.slice(0, 300)}`).toContain(code);
      if (text.startsWith('{')) expect(JSON.parse(text)).toMatchObject({ kind: 'Status', status: 'Failure' });
    }),
    { seed: Number(process.env['LIFEPOD_SEED']), numRuns: 1000, endOnFailure: true },
  );
  expect(refused).toContain(403);
  expect(at.api.store.revision()).toBe(before);
  expect(at.errors).toEqual([]);
});
