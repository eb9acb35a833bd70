import { fileURLToPath } from 'node:url';
import { Server, ServerCredentials, type ServiceDefinition, status } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { describe, expect } from 'vitest';
import { makeAuthority } from '../../src/apiserver/pki/certificates.ts';
import { pod, SHARED, WAIT } from '../support/manifests.ts';
import { condition, ended, inPhase, isReady, ready, restarted, runs, statusOf } from '../support/pods.ts';
import { LATE_MILLIS, type ProbedServer, startProbedServer } from '../support/probed-server.ts';
import { lifepod, record, testInFileNamespace as test } from '../support/shared-engine.ts';

let server: ProbedServer;
let secure: ProbedServer;
test.beforeAll(async () => {
  server = await startProbedServer();
  secure = await startProbedServer(await makeAuthority('nobody', Date.now()));
});
test.afterAll(async () => {
  await server?.close();
  await secure?.close();
});

const sh = (script: string): object => ({ exec: { command: ['sh', '-c', script] } });
/** The test's server runs outside the Pod. */
const ask = (path: string, more: object = {}): object => ({
  httpGet: { host: '127.0.0.1', port: server.port, path, ...more },
});
const exec = (name: string, script: string): Promise<string> =>
  lifepod.execOk(name, '-c', 'app', '--', 'sh', '-c', script);
const finished = (name: string): Promise<void> => lifepod.delete('pod', name, '--now', '--wait=false');
/** The timeout of 10 s is long enough for a busy machine. */
const EVERY_SECOND = { periodSeconds: 1, failureThreshold: 1, timeoutSeconds: 10 };

describe.concurrent('probes', () => {
  describe('results', () => {
    test('a readiness probe makes the Pod Ready or not Ready, and does not restart the container', async () => {
      const readinessProbe = { exec: { command: ['cat', '/tmp/ready'] }, ...EVERY_SECOND };
      await lifepod.apply(pod('readiness', { app: [{ name: 'app', script: WAIT, readinessProbe }] }));
      const missing = "cat: can't open '/tmp/ready': No such file or directory";
      expect(await record.event('readiness', /Unhealthy/)).toContain(
        `Warning Unhealthy: Readiness probe failed: ${missing}`,
      );
      const unready = await record.until('readiness', runs('app'));
      expect(statusOf(unready, 'app')).toMatchObject({ started: true, ready: false });
      for (const type of ['Ready', 'ContainersReady'])
        expect(condition(unready, type)).toMatchObject({
          status: 'False',
          reason: 'ContainersNotReady',
          message: 'containers with unready status: [app]',
        });
      await exec('readiness', 'touch /tmp/ready');
      const ready = await record.until('readiness', isReady);
      expect(condition(ready, 'Ready')).toEqual({
        type: 'Ready',
        status: 'True',
        lastTransitionTime: expect.any(String),
        observedGeneration: 1,
      });
      await exec('readiness', 'rm /tmp/ready');
      await record.until('readiness', (pod) => !isReady(pod));
      expect(await lifepod.kubectlOk('get', 'pod', 'readiness')).toMatch(/^readiness +0\/1 +Running +0 /m);
      await finished('readiness');
    });

    test('a liveness probe that reaches its failureThreshold restarts the container', async () => {
      const app = {
        name: 'app',
        // Only the second run of the container passes the probe.
        script: `[ -e /work/again ] && touch /tmp/healthy; touch /work/again; ${WAIT}`,
        livenessProbe: { exec: { command: ['cat', '/tmp/healthy'] }, ...EVERY_SECOND, failureThreshold: 2 },
        ...SHARED.mount,
      };
      await lifepod.apply(pod('liveness', { app: [app], spec: { volumes: SHARED.volumes } }));
      await record.until('liveness', restarted('app', 1));
      const again = await record.until('liveness', isReady);
      const { startedAt, finishedAt } = statusOf(again, 'app').lastState?.terminated ?? {};
      expect(Date.parse(finishedAt ?? '') - Date.parse(startedAt ?? '')).toBeGreaterThanOrEqual(1000);
      const missing = "cat: can't open '/tmp/healthy': No such file or directory";
      expect(await record.event('liveness', /Unhealthy/)).toContain(
        `Warning Unhealthy: Liveness probe failed: ${missing}`,
      );
      expect(await record.event('liveness', /Killing/)).toBe(
        'Normal Killing: Container app failed liveness probe, will be restarted',
      );
      await finished('liveness');
    });

    test('terminationGracePeriodSeconds of a liveness probe replaces that of the Pod, and with restartPolicy Never the Pod fails', async () => {
      const livenessProbe = { ...sh('false'), ...EVERY_SECOND, terminationGracePeriodSeconds: 1 };
      await lifepod.apply(
        pod('grace', {
          app: [{ name: 'app', script: 'trap "" TERM; while :; do sleep 1; done', livenessProbe }],
          spec: { restartPolicy: 'Never', terminationGracePeriodSeconds: 600 },
        }),
      );
      const failed = await record.until('grace', inPhase('Failed'));
      expect(statusOf(failed, 'app')).toMatchObject({ restartCount: 0, state: { terminated: { exitCode: 137 } } });
      expect(await record.event('grace', /Killing/)).toBe('Normal Killing: Container app failed liveness probe');
    });

    test('liveness and readiness probes wait until the startup probe has succeeded', async () => {
      const app = {
        name: 'app',
        script: WAIT,
        startupProbe: { ...sh('echo startup >>/tmp/asked; [ -e /tmp/up ]'), ...EVERY_SECOND, failureThreshold: 60 },
        livenessProbe: { ...sh('echo other >>/tmp/asked'), ...EVERY_SECOND },
        readinessProbe: { ...sh('echo other >>/tmp/asked'), ...EVERY_SECOND },
      };
      await lifepod.apply(pod('startup', { app: [app] }));
      await record.event('startup', /^Warning Unhealthy: Startup probe failed: /);
      const starting = await record.until('startup', runs('app'));
      expect(statusOf(starting, 'app')).toMatchObject({ started: false, ready: false });
      await exec('startup', 'until [ "$(wc -l </tmp/asked)" -ge 2 ]; do usleep 50000; done; touch /tmp/up');
      expect(statusOf(await record.until('startup', isReady), 'app')).toMatchObject({ started: true, restartCount: 0 });
      const asked = await exec(
        'startup',
        'until [ "$(grep -c other /tmp/asked)" -ge 3 ]; do usleep 50000; done; cat /tmp/asked',
      );
      expect(asked).toMatch(/^(startup\n){3,}(other\n){3,}$/);
      await finished('startup');
    });

    test('a startup probe that reaches its failureThreshold restarts the container', async () => {
      const startupProbe = { ...sh('echo not yet; exit 1'), ...EVERY_SECOND, failureThreshold: 2 };
      await lifepod.apply(pod('stuck', { app: [{ name: 'app', script: WAIT, startupProbe }] }));
      await record.until('stuck', restarted('app', 1));
      expect(await record.event('stuck', /Unhealthy/)).toBe('Warning Unhealthy: Startup probe failed: not yet\n');
      expect(await record.event('stuck', /Killing/)).toBe(
        'Normal Killing: Container app failed startup probe, will be restarted',
      );
      await finished('stuck');
    });

    test('a Pod is Ready only while its sidecars are ready', async () => {
      const side = {
        name: 'side',
        script: WAIT,
        restartPolicy: 'Always',
        readinessProbe: { ...sh('[ -e /work/ready ]'), ...EVERY_SECOND },
      };
      await lifepod.apply(
        pod('beside', {
          init: [{ ...side, ...SHARED.mount }],
          app: [{ name: 'app', script: WAIT, ...SHARED.mount }],
          spec: { volumes: SHARED.volumes },
        }),
      );
      const unready = await record.until('beside', runs('app'));
      expect(condition(unready, 'Ready')).toMatchObject({
        status: 'False',
        message: 'containers with unready status: [side]',
      });
      await exec('beside', 'touch /work/ready');
      await record.until('beside', isReady);
      await finished('beside');
    });
  });

  describe('handlers', () => {
    test('an httpGet probe succeeds on the status codes 200 to 399', async () => {
      const statuses = [200, 204, 399, 400, 503];
      await lifepod.apply(
        pod('statuses', {
          app: statuses.map((code) => ({
            name: `app-${code}`,
            script: WAIT,
            readinessProbe: { ...ask(`/status/${code}`), ...EVERY_SECOND },
          })),
        }),
      );
      for (const code of [400, 503])
        await record.event(
          'statuses',
          new RegExp(`Readiness probe failed: HTTP probe failed with statuscode: ${code}$`),
        );
      const asked = await record.until(
        'statuses',
        (pod) => pod.status?.containerStatuses?.filter(({ ready }) => ready).length === 3,
      );
      expect(asked.status?.containerStatuses?.map(({ ready }) => ready)).toEqual([true, true, true, false, false]);
      await finished('statuses');
    });

    test('an httpGet probe uses the given path, headers and host, and a port that is given by name', async () => {
      const httpHeaders = [
        { name: 'X-Twice', value: 'one' },
        { name: 'X-Twice', value: 'two' },
        { name: 'Host', value: 'shop.example' },
      ];
      await lifepod.apply(
        pod('headers', {
          app: [
            {
              name: 'app',
              script: WAIT,
              ports: [{ name: 'web', containerPort: server.port }],
              readinessProbe: { ...ask('/headers?full=1', { port: 'web', httpHeaders }), ...EVERY_SECOND },
            },
          ],
        }),
      );
      await record.until('headers', isReady);
      expect(server.asked('/headers?full=1')[0]?.headers).toMatchObject({
        host: 'shop.example',
        'x-twice': 'one, two',
        'user-agent': 'kube-probe/1.33',
        accept: '*/*',
      });
      await finished('headers');
    });

    test("an httpGet probe without a host uses the Pod's IP address", async () => {
      const app = {
        name: 'app',
        script: 'mkdir /www; echo fine >/www/healthz; exec httpd -f -p 8080 -h /www',
        ports: [{ name: 'web', containerPort: 8080 }],
        livenessProbe: { httpGet: { path: '/healthz', port: 8080 }, ...EVERY_SECOND, initialDelaySeconds: 1 },
        readinessProbe: { httpGet: { path: '/healthz', port: 'web' }, ...EVERY_SECOND },
      };
      await lifepod.apply(pod('inside', { app: [app], spec: { terminationGracePeriodSeconds: 1 } }));
      await record.until('inside', isReady);
      await exec('inside', 'rm /www/healthz');
      await record.event('inside', /Liveness probe failed: HTTP probe failed with statuscode: 404$/);
      await record.until('inside', restarted('app', 1));
      await finished('inside');
    });

    test('an httpGet probe with the scheme HTTPS accepts any certificate, but fails on a plain HTTP response', async () => {
      const readinessProbe = (port: number, path: string): object => ({
        ...ask(path, { port, scheme: 'HTTPS' }),
        ...EVERY_SECOND,
      });
      await lifepod.apply(
        pod('https', {
          app: [
            { name: 'secure', script: WAIT, readinessProbe: readinessProbe(secure.port, '/secure') },
            { name: 'plain', script: WAIT, readinessProbe: readinessProbe(server.port, '/plain') },
          ],
        }),
      );
      await record.event(
        'https',
        /Readiness probe failed: Get "https:.*\/plain": http: server gave HTTP response to HTTPS client$/,
      );
      await record.until('https', ready('secure'));
      expect(statusOf(record.now('https'), 'plain').ready).toBe(false);
      expect(secure.asked('/secure').length).toBeGreaterThan(0);
      await finished('https');
    });

    test('an httpGet probe does not follow a redirect to another host, and succeeds with a warning', async () => {
      await lifepod.apply(
        pod('away', { app: [{ name: 'app', script: WAIT, readinessProbe: { ...ask('/away'), ...EVERY_SECOND } }] }),
      );
      await record.until('away', isReady);
      expect(await record.event('away', /ProbeWarning/)).toBe(
        'Warning ProbeWarning: Readiness probe warning: Probe terminated redirects, Response body: gone away',
      );
      await finished('away');
    });

    test('a tcpSocket probe succeeds when the connection is established', async () => {
      const readinessProbe = { tcpSocket: { port: 'raw' }, ...EVERY_SECOND };
      await lifepod.apply(
        pod('tcp', {
          app: [{ name: 'app', script: WAIT, ports: [{ name: 'raw', containerPort: 7000 }], readinessProbe }],
        }),
      );
      const event = await record.event('tcp', /Unhealthy/);
      const ip = (await record.until('tcp', runs('app'))).status?.podIP;
      expect(event).toBe(`Warning Unhealthy: Readiness probe failed: dial tcp ${ip}:7000: connect: connection refused`);
      await exec('tcp', 'httpd -p 7000');
      await record.until('tcp', isReady);
      await finished('tcp');
    });

    test('a grpc probe calls the health service for the whole server or for the given service', async () => {
      const { items } = await lifepod.get<{ items: { status: { addresses: { type: string; address: string }[] } }[] }>(
        'nodes',
      );
      const address = items[0]?.status.addresses.find(({ type }) => type === 'InternalIP')?.address ?? '';
      const health = await startHealthServer(address);
      const app = (name: string, service?: string) => ({
        name,
        script: WAIT,
        readinessProbe: { grpc: { port: health.port, ...(service === undefined ? {} : { service }) }, ...EVERY_SECOND },
      });
      // The Pod uses hostNetwork, because probes go to the Pod's address and the server runs on the node.
      await lifepod.apply(
        pod('grpc', { app: [app('whole'), app('sick', 'sick'), app('none', 'none')], spec: { hostNetwork: true } }),
      );
      await record.until('grpc', ready('whole'));
      expect(await record.event('grpc', /NOT_SERVING/)).toBe(
        'Warning Unhealthy: Readiness probe failed: service unhealthy (responded with "NOT_SERVING")',
      );
      expect(await record.event('grpc', /NotFound/)).toBe(
        'Warning Unhealthy: Readiness probe failed: error: health rpc probe failed: rpc error: code = NotFound desc = unknown service',
      );
      expect(statusOf(record.now('grpc'), 'sick').ready).toBe(false);
      await lifepod.delete('pod', 'grpc', '--now');
      health.close();
    });

    test('a probe without a response within timeoutSeconds fails', async () => {
      await lifepod.apply(
        pod('late', {
          app: [
            {
              name: 'exec',
              script: WAIT,
              readinessProbe: { exec: { command: ['sleep', '30'] }, ...EVERY_SECOND, timeoutSeconds: 1 },
            },
            { name: 'http', script: WAIT, readinessProbe: { ...ask('/slow'), ...EVERY_SECOND, timeoutSeconds: 1 } },
          ],
        }),
      );
      expect(await record.event('late', /command/)).toBe(
        'Warning Unhealthy: Readiness probe failed: command "sleep 30" timed out',
      );
      expect(await record.event('late', /slow/)).toBe(
        `Warning Unhealthy: Readiness probe failed: Get "http://127.0.0.1:${server.port}/slow": context deadline exceeded (Client.Timeout exceeded while awaiting headers)`,
      );
      await finished('late');
    });
  });

  describe('timing', () => {
    test('probes start after initialDelaySeconds and repeat every periodSeconds without drift', async () => {
      const readinessProbe = { ...ask('/late'), ...EVERY_SECOND, initialDelaySeconds: 2 };
      await lifepod.apply(pod('timing', { app: [{ name: 'app', script: WAIT, readinessProbe }] }));
      const asked = await server.untilAsked('/late', 7);
      const first = asked[0]?.at ?? 0;
      // startedAt is rounded down to whole seconds, so the measured delay is up to 1 s longer.
      const startedAt = Date.parse(statusOf(record.now('timing'), 'app').state?.running?.startedAt ?? '');
      expect(first - startedAt).toBeGreaterThanOrEqual(2000);
      expect(first - startedAt).toBeLessThan(6000);
      // The offset of each request from a series with one request per second. On a busy machine, single requests, even the first, are late.
      const offsets = asked.slice(0, 7).map(({ at }, index) => at - index * 1000);
      const [middle = 0] = offsets.toSorted((a, b) => a - b).slice(3);
      const late = offsets.map((offset) => Math.abs(offset - middle)).sort((a, b) => a - b);
      // If each period began with the response to the previous probe, four requests would differ by twice LATE_MILLIS or more.
      expect(late[3]).toBeLessThan(1.5 * LATE_MILLIS);
      await finished('timing');
    });

    test('successThreshold and failureThreshold count consecutive results', async () => {
      const readinessProbe = { ...ask('/switch'), ...EVERY_SECOND, successThreshold: 2, failureThreshold: 3 };
      await lifepod.apply(pod('thresholds', { app: [{ name: 'app', script: WAIT, readinessProbe }] }));
      await record.until('thresholds', isReady);
      const readyAt = record.history('thresholds').find(({ pod }) => isReady(pod))?.at ?? 0;
      expect(server.asked('/switch').filter(({ at }) => at < readyAt)).toHaveLength(2);
      const before = server.asked('/switch').length;
      server.set(500);
      await record.until('thresholds', (pod) => !isReady(pod));
      expect(server.asked('/switch')).toHaveLength(before + 3);
      await finished('thresholds');
    });

    test('readiness probes still run after a Pod is deleted, but liveness probes do not', async () => {
      const app = {
        name: 'app',
        script: 'trap "sleep 3; exit 0" TERM; while :; do sleep 3600 & wait $!; done',
        livenessProbe: { ...ask('/live'), periodSeconds: 1 },
        readinessProbe: { ...ask('/ready'), periodSeconds: 1 },
      };
      await lifepod.apply(pod('ending', { app: [app] }));
      await server.untilAsked('/live', 2);
      await lifepod.delete('pod', 'ending', '--wait=false');
      const deletedAt = record.history('ending').find(({ pod }) => pod.metadata.deletionTimestamp)?.at ?? Date.now();
      await record.gone('ending');
      expect(server.asked('/live').filter(({ at }) => at > deletedAt + 100)).toEqual([]);
      expect(server.asked('/ready').filter(({ at }) => at > deletedAt + 100).length).toBeGreaterThanOrEqual(2);
      expect(ended('app')(record.now('ending'))).toBe(true);
    });
  });
});

/** The server reports SERVING for itself, NotFound for the service "none", and NOT_SERVING for others. */
async function startHealthServer(address: string): Promise<{ port: number; close(): void }> {
  const proto = fileURLToPath(new URL('../../src/node/handlers/health.proto', import.meta.url));
  const types = loadSync(proto, { enums: String, defaults: true });
  const grpc = new Server();
  grpc.addService(types['grpc.health.v1.Health'] as ServiceDefinition, {
    Check(call: { request: { service: string } }, done: (error: object | null, answer?: object) => void) {
      const { service } = call.request;
      if (service === 'none') done({ code: status.NOT_FOUND, details: 'unknown service' });
      else done(null, { status: service === '' ? 'SERVING' : 'NOT_SERVING' });
    },
  });
  const port = await new Promise<number>((resolve, reject) =>
    grpc.bindAsync(`${address}:0`, ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    ),
  );
  return { port, close: () => grpc.forceShutdown() };
}
