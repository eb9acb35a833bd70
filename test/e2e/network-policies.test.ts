/** NetworkPolicies with real Pods, through kubectl. */
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
  // The signal of timeout(1) ends the client.
  expect((await lifepod.kubectl(...get)).stderr).toContain('exit code 143');
  const namespaceSelector = { matchLabels: { 'kubernetes.io/metadata.name': lifepod.namespace } };
  const ingress = [{ from: [{ namespaceSelector }], ports: [{ port: 8080 }] }];
  await lifepod.apply(policy({ podSelector: { matchLabels: { app: 'web' } }, ingress }));
  // Until the rules contain the policy, the kernel drops the first packets, and the client sends them again.
  get[get.indexOf('2')] = '30';
  expect(await lifepod.kubectlOk(...get)).toBe('hello\n');
  await lifepod.kubectlOk('delete', 'networkpolicy', 'web');
  expect(await lifepod.kubectlOk(...get)).toBe('hello\n');
});

test('a Pod without allowed egress reaches the cluster DNS, but no other Pod', async () => {
  const ports = [{ protocol: 'UDP', port: 53 }];
  await lifepod.apply(policy({ podSelector: {}, policyTypes: ['Egress'], egress: [{ ports }] }));
  await lifepod.apply(pod('client'));
  await lifepod.apply(pod('other'));
  await record.until('client', isReady);
  const { status } = await record.until('other', isReady);
  const name = 'kubernetes.default.svc.cluster.local';
  expect(await lifepod.kubectlOk('exec', 'client', '--', 'nslookup', name)).toContain(name);
  const ping = await lifepod.kubectl('exec', 'client', '--', 'ping', '-c', '1', '-W', '1', status?.podIP ?? '');
  expect(ping.stdout).toContain('100% packet loss');
});
