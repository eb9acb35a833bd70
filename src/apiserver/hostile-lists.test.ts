import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CONFIG_MAPS, OTHERS_WAIT_MILLIS, PODS, startHostileServer, whileServingOthers } from './hostile-fixture.ts';
import type { TestServer } from './server-fixture.ts';

let at: TestServer;
beforeAll(async () => {
  at = await startHostileServer();
});
afterAll(() => at[Symbol.asyncDispose]());

const list = <T>(count: number, item: (index: number) => T): T[] => Array.from({ length: count }, (_, i) => item(i));
const pod = (name: string, container: object, rest: object = {}): string =>
  JSON.stringify({ metadata: { name }, spec: { containers: [{ name: 'a', image: 'b', ...container }], ...rest } });

/**
 * Comparing all pairs of so many elements would take about ten times OTHERS_WAIT_MILLIS; linear work takes about a tenth of
 * OTHERS_WAIT_MILLIS.
 */
const COUNT = 10_000;

describe('Pods with long lists', () => {
  const volumes = list(COUNT, (i) => ({ name: `v${i}`, persistentVolumeClaim: { claimName: 'c' } }));
  test.each<[string, object, object?]>([
    ['ports', { ports: list(30_000, (i) => ({ containerPort: i + 1 })) }],
    ['equal ports', { ports: list(COUNT, () => ({ containerPort: 80 })) }],
    ['host ports for one port', { ports: list(COUNT, (i) => ({ containerPort: 80, hostPort: i + 1 })) }],
    ['named ports', { ports: list(COUNT, (i) => ({ containerPort: 80, name: `p${i}` })) }],
    [
      'mounts and devices',
      {
        volumeMounts: list(COUNT, (i) => ({ name: 'm', mountPath: `/m${i}` })),
        volumeDevices: volumes.map(({ name }) => ({ name, devicePath: `/d/${name}` })),
      },
      { volumes: [{ name: 'm', emptyDir: {} }, ...volumes] },
    ],
    ['host aliases', {}, { hostAliases: list(COUNT, (i) => ({ ip: `10.1.${i >> 8}.${i & 255}`, hostnames: ['h'] })) }],
    ['pull secrets', {}, { imagePullSecrets: list(COUNT, (i) => ({ name: `s${i}` })) }],
    [
      'spread constraints',
      {},
      {
        topologySpreadConstraints: list(COUNT, (i) => ({
          maxSkew: 1,
          topologyKey: `k${i}`,
          whenUnsatisfiable: 'ScheduleAnyway',
        })),
      },
    ],
  ])('a Pod with many %s gets a response while other clients are served', async (what, container, rest) => {
    const body = pod(what.replaceAll(' ', '-'), container, rest);
    const { code, headers, othersWaited } = await whileServingOthers(at, () => at.call('POST', PODS, { body }));
    expect([201, 422]).toContain(code);
    expect(othersWaited).toBeLessThan(OTHERS_WAIT_MILLIS);
    expect(String(headers.warning ?? '').length).toBeLessThan(10_000);
  });
});

describe('objects with many containers', () => {
  const DEPLOYMENTS = '/apis/apps/v1/namespaces/default/deployments';
  const bodyOf = (path: string, count: number): string => {
    const spec = { containers: list(count, (i) => ({ name: `c${i}`, image: 'i' })) };
    const labels = { app: 'a' };
    const selector = { matchLabels: labels };
    const deployment = { selector, template: { metadata: { labels }, spec } };
    return JSON.stringify({ metadata: { name: `many-${count}` }, spec: path === PODS ? spec : deployment });
  };
  /** If an object with 90,000 containers were validated, other clients would wait longer than this. */
  const WAIT_MILLIS = OTHERS_WAIT_MILLIS / 3;

  test.each([PODS, DEPLOYMENTS])(
    'POST %s with 20,000 containers is accepted while other clients are served',
    async (path) => {
      const { code, othersWaited } = await whileServingOthers(at, () =>
        at.call('POST', path, { body: bodyOf(path, 20_000) }),
      );
      expect(code).toBe(201);
      expect(othersWaited).toBeLessThan(WAIT_MILLIS);
    },
  );

  test.each([PODS, DEPLOYMENTS])('POST %s with 90,000 containers is refused without validation', async (path) => {
    const body = bodyOf(path, 90_000);
    const { code, json, othersWaited } = await whileServingOthers(at, () => at.call('POST', path, { body }));
    expect(code).toBe(413);
    expect(json.message).toContain('the object would have more than 300000 values');
    expect(othersWaited).toBeLessThan(WAIT_MILLIS);
  });

  test('PUT of a Deployment with 90,000 containers is refused without validation', async () => {
    const named = (count: number): string => bodyOf(DEPLOYMENTS, count).replace(/many-\d+/, 'replaced');
    expect((await at.call('POST', DEPLOYMENTS, { body: named(1) })).code).toBe(201);
    const { code, json, othersWaited } = await whileServingOthers(at, () =>
      at.call('PUT', `${DEPLOYMENTS}/replaced`, { body: named(90_000) }),
    );
    expect(code).toBe(413);
    expect(json.message).toContain('the object would have more than 300000 values');
    expect(othersWaited).toBeLessThan(WAIT_MILLIS);
  });
});

test('the row of a Pod with many readiness gates and conditions is computed while other clients are served', async () => {
  const readinessGates = list(2 * COUNT, (i) => ({ conditionType: `a/gate-${i}` }));
  expect((await at.call('POST', PODS, { body: pod('gates', {}, { readinessGates }) })).code).toBe(201);
  const conditions = list(2 * COUNT, (i) => ({ type: `a/other-${i}`, status: 'True' }));
  const headers = { 'content-type': 'application/merge-patch+json' };
  const body = JSON.stringify({ status: { conditions } });
  expect((await at.call('PATCH', `${PODS}/gates/status`, { body, headers })).code).toBe(200);
  const { json, othersWaited } = await whileServingOthers(at, () =>
    at.call('GET', `${PODS}/gates?includeObject=None`, {
      headers: { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' },
    }),
  );
  expect(json.rows[0].cells).toContain(`0/${2 * COUNT}`);
  expect(othersWaited).toBeLessThan(OTHERS_WAIT_MILLIS);
});

test('a strategic merge patch of a long list is merged while other clients are served', async () => {
  await at.call('POST', PODS, { body: pod('merged', {}) });
  const patch = (operator: string) =>
    JSON.stringify({
      metadata: {
        ownerReferences: list(COUNT, (i) => ({ apiVersion: 'v1', kind: 'K', name: operator, uid: `u${i}` })),
      },
    });
  for (const each of ['one', 'two']) {
    const { code, othersWaited } = await whileServingOthers(at, () =>
      at.call('PATCH', `${PODS}/merged`, {
        body: patch(each),
        headers: { 'content-type': 'application/strategic-merge-patch+json' },
      }),
    );
    expect(code).toBe(200);
    expect(othersWaited).toBeLessThan(OTHERS_WAIT_MILLIS);
  }
});

describe('the response to a request with long lists', () => {
  test('the response to an object with 20,000 errors contains the first thousand errors', async () => {
    const labels = Object.fromEntries(list(20_000, (i) => [`not a label ${i}`, 'x']));
    const { code, json } = await at.call('POST', CONFIG_MAPS, {
      body: JSON.stringify({ metadata: { name: 'a', labels } }),
    });
    expect(code).toBe(422);
    expect(json.details.causes).toHaveLength(1000);
    expect(json.message).toMatch(/, and more\]$/);
  });

  test('the response contains the first thousand errors even if there are more errors than a call can have arguments', async () => {
    const finalizers = list(200_000, () => '!');
    const { code, json } = await at.call('POST', CONFIG_MAPS, {
      body: JSON.stringify({ metadata: { name: 'a', finalizers } }),
    });
    expect(code).toBe(422);
    expect(json.details.causes).toHaveLength(1000);
  });

  test('the response does not repeat a long name completely in each error about the name', async () => {
    const items = list(1000, () => ({ key: 'k', path: 'p' }));
    const sources = [{ secret: { name: 'a'.repeat(300_000), items } }];
    const spec = { containers: [{ name: 'a', image: 'b' }], volumes: [{ name: 'v', projected: { sources } }] };
    for (const [path, body] of [
      [PODS, { metadata: { name: 'long' }, spec }],
      [PODS.replace('pods', 'podtemplates'), { metadata: { name: 'long' }, template: { spec } }],
    ] as const) {
      const { code, text, json } = await at.call('POST', path, { body: JSON.stringify(body) });
      expect(code).toBe(422);
      expect(json.details.causes.at(-1).message).toMatch(/^Invalid value: "a+…": conflicting duplicate paths$/);
      expect(text.length).toBeLessThan(3 * 1024 * 1024);
    }
  });

  test('the response to ownerReferences with too many controllers shows the references only once', async () => {
    const ownerReferences = list(10_000, (i) => ({
      apiVersion: 'v1',
      kind: 'K',
      name: `n${i}`,
      uid: `u${i}`,
      controller: true,
    }));
    const body = JSON.stringify({ metadata: { name: 'a', ownerReferences } });
    const { code, text, json } = await at.call('POST', CONFIG_MAPS, { body });
    expect(code).toBe(422);
    expect(json.details.causes).toHaveLength(1);
    expect(text.length).toBeLessThan(6 * body.length);
  });

  test('the response has truncated Warning headers of at most 4096 characters together', async () => {
    const unknown = Object.fromEntries(list(100_000, (i) => [`unknown${i}`, 1]));
    const { code, headers } = await at.call('POST', CONFIG_MAPS, {
      body: JSON.stringify({ metadata: { name: 'warned' }, [`x${'y'.repeat(1000)}`]: 1, ...unknown }),
    });
    expect(code).toBe(201);
    const texts = String(headers.warning)
      .split(', 299 - ')
      .map((text) => text.replace(/^299 - /, '').slice(1, -1));
    expect(texts.length).toBeGreaterThan(50);
    expect(texts.reduce((sum, text) => sum + text.replaceAll('\\"', '"').length, 0)).toBeLessThanOrEqual(4096);
    expect(texts[0]?.replaceAll('\\"', '"')).toHaveLength(256);
    expect(texts[1]).toBe('unknown field \\"unknown0\\"');
  });
});
