import { expect } from 'vitest';
import { pod, WAIT } from '../support/manifests.ts';
import { isReady } from '../support/pods.ts';
import { lifepod, record, test } from '../support/shared-engine.ts';

const policy = (spec: object): object => ({
  apiVersion: 'networking.k8s.io/v1',
  kind: 'NetworkPolicy',
  metadata: { name: 'web' },
  spec,
});

test('a Pod is reached only as its NetworkPolicy allows it, from its first container on', async () => {
  const script = `mkdir /www; echo hello > /www/index.html; httpd -p 8080 -h /www; ${WAIT}`;
  const readinessProbe = { httpGet: { port: 8080, path: '/index.html' }, periodSeconds: 1 };
  await lifepod.apply(policy({ podSelector: { matchLabels: { app: 'web' } } }));
  await lifepod.apply(pod('web', { app: [{ name: 'app', script, readinessProbe }], labels: { app: 'web' } }));
  await lifepod.apply(pod('client', { labels: { app: 'client' } }));
  const { status } = await record.until('web', isReady);
  await record.until('client', isReady);
  const get = ['exec', 'client', '--', 'timeout', '2', 'wget', '-q', '-O-', `http://${status?.podIP}:8080/`];
  // timeout(1) ends the client with SIGTERM.
  expect((await lifepod.kubectl(...get)).stderr).toContain('exit code 143');
  const namespaceSelector = { matchLabels: { 'kubernetes.io/metadata.name': lifepod.namespace } };
  const ingress = [{ from: [{ namespaceSelector }], ports: [{ port: 8080 }] }];
  await lifepod.apply(policy({ podSelector: { matchLabels: { app: 'web' } }, ingress }));
  // Until the rules contain the policy, the kernel drops the first packets, and the client sends them again.
  get[get.indexOf('2')] = '30';
  expect(await lifepod.kubectlOk(...get)).toBe('hello\n');
  await lifepod.delete('networkpolicy', 'web');
  expect(await lifepod.kubectlOk(...get)).toBe('hello\n');
});

const SERVE = (port: number): string => `nc -ll -p ${port} -e sh -c 'while read line; do echo hello; done'`;

test('policies by Pods, ports up to endPort and address blocks apply, and a connection that is no longer allowed is cut', async () => {
  const app = { name: 'app', script: `${SERVE(8080)} & ${SERVE(8081)} & ${SERVE(8082)} & ${WAIT}` };
  await lifepod.apply(pod('web', { app: [app], labels: { app: 'web' } }));
  await lifepod.apply(pod('client', { labels: { app: 'client' } }));
  await lifepod.apply(pod('guest', { labels: { app: 'guest' } }));
  const { status: web } = await record.until('web', isReady);
  const { status: client } = await record.until('client', isReady);
  await record.until('guest', isReady);
  const sh = async (from: string, script: string): Promise<string> =>
    (await lifepod.exec(from, '--', 'sh', '-c', script)).stdout.trim();
  const ask = (from: string, port: number): Promise<string> =>
    sh(from, `echo hi | timeout 3 nc -w 2 ${web?.podIP} ${port}`);
  const podSelector = { matchLabels: { app: 'web' } };
  const ports = [{ port: 8080, endPort: 8081 }];
  await lifepod.apply(
    policy({ podSelector, ingress: [{ from: [{ podSelector: { matchLabels: { app: 'client' } } }], ports }] }),
  );
  await expect.poll(() => ask('guest', 8080), { timeout: 30_000 }).toBe('');
  expect([await ask('client', 8080), await ask('client', 8081), await ask('client', 8082)]).toEqual([
    'hello',
    'hello',
    '',
  ]);

  // The client sends a line every 0.1 s on one connection. The test counts the answers.
  await sh('client', `(while :; do echo hi; sleep 0.1; done | nc ${web?.podIP} 8080 >/tmp/answers) >/dev/null 2>&1 &`);
  const answers = async (): Promise<number> => Number((await sh('client', 'wc -l </tmp/answers')) || 0);
  await expect.poll(answers, { timeout: 30_000 }).toBeGreaterThan(3);
  const except = [`${client?.podIP}/32`];
  await lifepod.apply(policy({ podSelector, ingress: [{ from: [{ ipBlock: { cidr: '0.0.0.0/0', except } }] }] }));
  await expect.poll(() => ask('guest', 8082), { timeout: 30_000 }).toBe('hello');
  expect(await ask('client', 8080)).toBe('');
  const whenCut = await answers();
  expect(await ask('client', 8080)).toBe('');
  expect(await answers()).toBe(whenCut);
});

test('a Pod without allowed egress reaches the cluster DNS, but no other Pod', async () => {
  const ports = [{ protocol: 'UDP', port: 53 }];
  await lifepod.apply(policy({ podSelector: {}, policyTypes: ['Egress'], egress: [{ ports }] }));
  await lifepod.apply(pod('client'));
  await lifepod.apply(pod('other'));
  await record.until('client', isReady);
  const { status } = await record.until('other', isReady);
  const name = 'kubernetes.default.svc.cluster.local';
  expect(await lifepod.execOk('client', '--', 'nslookup', name)).toContain(name);
  const ping = await lifepod.exec('client', '--', 'ping', '-c', '1', '-W', '1', status?.podIP ?? '');
  expect(ping.stdout).toContain('100% packet loss');
});
