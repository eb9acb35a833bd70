import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { PODS } from '../../api/resources.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import { createMetrics, type Metrics } from '../../platform/metrics.ts';
import { readText, startTestServer, type TestServer } from '../server-fixture.ts';

let at: TestServer;
let metrics: Metrics;
beforeEach(async () => {
  metrics = createMetrics();
  at = await startTestServer({ metrics });
});
afterEach(() => at[Symbol.asyncDispose]());

const POD = '/api/v1/namespaces/default/pods';

/** Resolves to the values and histogram counts of a metric, each as `LABEL VALUES: VALUE`. */
async function samples(name: string): Promise<string[]> {
  const families = await metrics.families();
  return families
    .filter((family) => family.name === name)
    .flatMap(({ samples }) => samples)
    .filter(({ suffix = '_count' }) => suffix === '_count')
    .map(({ labels, value }) => `${Object.values(labels).join(' ')}: ${value}`);
}

test('requests are counted by verb, resource and code', async () => {
  await at.api.create(PODS, 'default', {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web' },
    spec: { containers: [{ name: 'app', image: 'x' }] },
  } as KubeObject);
  await at.call('GET', `${POD}/web`);
  await at.call('GET', `${POD}/web`);
  await at.call('GET', `${POD}/gone`);
  await at.call('GET', '/api/v1/pods');
  await at.call('DELETE', `${POD}/web`);
  await at.call('GET', '/version');
  await at.call('GET', '/api/v1/whatever-clients-make-up');
  expect(await samples('apiserver_request_total')).toEqual([
    'GET  v1 pods  resource 200: 2',
    'GET  v1 pods  resource 404: 1',
    'LIST  v1 pods  cluster 200: 1',
    'DELETE  v1 pods  resource 200: 1',
    'GET      200: 1',
    'GET      404: 1',
  ]);
  expect(await samples('apiserver_request_duration_seconds')).toContain('GET  v1 pods  resource: 3');
});

test('a watch counts as a long-running request until it ends, and is not part of the request durations', async () => {
  const client = new AbortController();
  const watch = vi.spyOn(at.backend, 'watch');
  const response = await at.open('GET', `${POD}?watch=true`, { signal: client.signal });
  expect(await samples('apiserver_longrunning_requests')).toEqual(['WATCH  v1 pods  namespace: 1']);
  response.on('error', () => undefined);
  client.abort();
  await watch.mock.results[0]?.value;
  expect(await samples('apiserver_longrunning_requests')).toEqual(['WATCH  v1 pods  namespace: 0']);
  expect(await samples('apiserver_request_total')).toEqual(['WATCH  v1 pods  namespace 200: 1']);
  expect(await samples('apiserver_request_duration_seconds')).toEqual([]);
});

test('/metrics is served to authorized users with GET only', async () => {
  const scrapes = metrics.counter('asked_total', 'How often.', []);
  scrapes.add(3);
  const response = await at.open('GET', '/metrics');
  expect(response.headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8');
  expect(await readText(response)).toContain('# TYPE asked_total counter\nasked_total 3\n');
  expect(await at.call('GET', '/metrics', { agent: at.anonymous })).toMatchObject({ code: 401 });
  expect(await at.call('POST', '/metrics', { body: '' })).toMatchObject({ code: 405 });
  expect(await at.call('GET', '/metrics/more')).toMatchObject({ code: 404 });
});
