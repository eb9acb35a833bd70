import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Answer, startTestServer, type TestServer } from './server-fixture.ts';

let at: TestServer;
beforeAll(async () => {
  at = await startTestServer();
});
afterAll(() => at[Symbol.asyncDispose]());

const PODS = '/api/v1/namespaces/default/pods';
const BUDGETS = '/apis/policy/v1/namespaces/default/poddisruptionbudgets';
const MESSAGE = "Cannot evict pod as it would violate the pod's disruption budget.";

const send = (method: string, path: string, body: object, type = 'application/json'): Promise<Answer> =>
  at.call(method, path, { body: JSON.stringify(body), headers: { 'content-type': type } });
const merge = (path: string, body: object): Promise<Answer> =>
  send('PATCH', path, body, 'application/merge-patch+json');
const evict = (name: string, version = 'v1'): Promise<Answer> =>
  send('POST', `${PODS}/${name}/eviction`, { apiVersion: `policy/${version}`, kind: 'Eviction', metadata: { name } });

async function running(name: string, app: string): Promise<void> {
  const spec = { nodeName: 'n1', containers: [{ name: 'app', image: 'busybox:1.28' }] };
  await send('POST', PODS, { apiVersion: 'v1', kind: 'Pod', metadata: { name, labels: { app } }, spec });
  const conditions = [{ type: 'Ready', status: 'True' }];
  expect((await merge(`${PODS}/${name}/status`, { status: { phase: 'Running', conditions } })).code).toBe(200);
}
/** If `disruptionsAllowed` is undefined, the budget has no status, as if the controller had not seen it. */
async function budget(name: string, disruptionsAllowed: number | undefined, app = name): Promise<void> {
  const spec = { minAvailable: 1, selector: { matchLabels: { app } } };
  await send('POST', BUDGETS, { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', metadata: { name }, spec });
  if (disruptionsAllowed === undefined) return;
  const numbers = { currentHealthy: 1, desiredHealthy: 1, expectedPods: 1, observedGeneration: 1 };
  expect((await merge(`${BUDGETS}/${name}/status`, { status: { ...numbers, disruptionsAllowed } })).code).toBe(200);
}

test.each(['v1', 'v1beta1'])('an eviction in the version policy/%s charges the budget', async (version) => {
  await running(`free-${version}`, version);
  await budget(version, 1);
  const { code, json } = await evict(`free-${version}`, version);
  expect([code, json]).toEqual([201, { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 }]);
  expect((await at.call('GET', `${BUDGETS}/${version}`)).json.status.disruptionsAllowed).toBe(0);
});

test('an eviction that the budget does not allow gets 429 with the cause, and no time after which to try again', async () => {
  await running('kept', 'full');
  await budget('full', 0);
  const { code, headers, json } = await evict('kept');
  expect([code, headers['retry-after']]).toEqual([429, undefined]);
  expect(json).toMatchObject({
    status: 'Failure',
    reason: 'TooManyRequests',
    message: MESSAGE,
    details: {
      causes: [
        { reason: 'DisruptionBudget', message: 'The disruption budget full needs 1 healthy pods and has 1 currently' },
      ],
    },
  });
});

test('an eviction gets 429 with Retry-After while the controller has not seen the budget', async () => {
  await running('new', 'new');
  await budget('new', undefined);
  const { code, headers, json } = await evict('new');
  expect([code, headers['retry-after']]).toEqual([429, '10']);
  expect(json.details.causes).toEqual([
    { reason: 'DisruptionBudget', message: 'The disruption budget new is still being processed by the server.' },
  ]);
});

test('an eviction gets 500 if several budgets select the Pod', async () => {
  await running('twice', 'twice');
  await budget('one', 1, 'twice');
  await budget('two', 1, 'twice');
  const { code, json } = await evict('twice');
  expect([code, json.message]).toEqual([
    500,
    'This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.',
  ]);
});
