import { once } from 'node:events';
import { connect } from 'node:net';
import { stripVTControlCharacters } from 'node:util';
import { expect } from 'vitest';
import { startClient } from '../support/client-command.ts';
import { KUBECTL } from '../support/kubectl.ts';
import { pod, WAIT } from '../support/manifests.ts';
import { isReady } from '../support/pods.ts';
import { lifepod, record, test } from '../support/shared-engine.ts';

const PAGE = '<a href="/next">next</a>';

test('kubectl reads pages of a Pod through the proxies of the Pod and of its Service', async () => {
  const script = `mkdir -p /www/sub; echo '${PAGE}' > /www/index.html; httpd -p 8080 -h /www; ${WAIT}`;
  const readinessProbe = { httpGet: { port: 8080, path: '/index.html' }, periodSeconds: 1 };
  const app = { name: 'app', script, readinessProbe, ports: [{ name: 'http', containerPort: 8080 }] };
  const { namespace } = lifepod;
  await lifepod.apply(pod('web', { app: [app], labels: { app: 'web' } }));
  await record.until('web', isReady);
  expect(await lifepod.kubectlOk('expose', 'pod', 'web', '--port=80', '--target-port=http')).toBe(
    'service/web exposed\n',
  );
  await lifepod.until(['get', 'endpoints', '-w'], (line) => /^web .*:8080/.test(line));
  const read = (path: string): Promise<string> =>
    lifepod.kubectlOk('get', '--raw', `/api/v1/namespaces/${namespace}/${path}`);
  for (const base of ['pods/web/proxy', 'pods/http:web:8080/proxy', 'services/web/proxy', 'services/web:80/proxy']) {
    const link = `<a href="/api/v1/namespaces/${namespace}/${base}/next">next</a>`;
    expect(await read(`${base}/`)).toBe(`${link}\n`);
    expect(await read(`${base}/index.html?a=b`)).toBe(`${link}\n`);
  }
  const refused = await lifepod.kubectl('get', '--raw', `/api/v1/namespaces/${namespace}/pods/web:81/proxy/`);
  expect(refused.stderr).toMatch(/error trying to reach service: dial tcp .*:81: connect: connection refused/);
  const unknown = await lifepod.kubectl('get', '--raw', `/api/v1/namespaces/${namespace}/services/web:82/proxy/`);
  expect(unknown.stderr).toContain('no service port 82 found for service "web"');
});

test('kubectl logs, exec and port-forward reach a Pod of a Service by the name and the number of its port', async () => {
  const script = 'echo started; exec nc -ll -p 8080 -e sh -c \'while read line; do echo "got $line"; done\'';
  const app = { name: 'app', script, ports: [{ name: 'http', containerPort: 8080 }] };
  await lifepod.apply(pod('web', { app: [app], labels: { app: 'web' } }));
  await record.until('web', isReady);
  const service = (name: string, selector?: object): object => {
    const ports = [
      { name: 'by-name', port: 80, targetPort: 'http' },
      { name: 'by-number', port: 81, targetPort: 9090 },
    ];
    return { apiVersion: 'v1', kind: 'Service', metadata: { name }, spec: { ports, ...(selector && { selector }) } };
  };
  await lifepod.apply(service('web', { app: 'web' }));
  await lifepod.apply(service('external'));
  expect(await lifepod.kubectlOk('logs', 'svc/web')).toBe('started\n');
  expect(await lifepod.kubectlOk('exec', 'svc/web', '--', 'hostname')).toBe('web\n');
  for (const [port, inPod] of [
    [':80', 8080],
    [':by-name', 8080],
    [':81', 9090],
  ]) {
    await lifepod.until(['port-forward', 'svc/web', String(port)], (line) =>
      new RegExp(`^Forwarding from 127.0.0.1:\\d+ -> ${inPod}$`).test(line),
    );
  }
  const forwarding = startClient(lifepod, KUBECTL, ['port-forward', '-n', lifepod.namespace, 'svc/web', ':80']);
  const [, port] = await forwarding.printed(/^Forwarding from 127.0.0.1:(\d+)/m);
  const socket = connect(Number(port), '127.0.0.1');
  socket.write('a line\n');
  expect(String((await once(socket, 'data'))[0])).toBe('got a line\n');
  socket.destroy();
  forwarding.kill('SIGTERM');
  await forwarding.ended;
  for (const command of [
    ['port-forward', 'svc/external', ':80'],
    ['logs', 'svc/external'],
  ]) {
    const { code, stderr } = await lifepod.kubectl(...command);
    expect([code, stderr]).toEqual([1, expect.stringContaining('Service is defined without a selector')]);
  }
});

test('kubectl proxy gives clients without credentials the pages of Services and uploads to Pods', async () => {
  // The program reads the whole upload before it responds: Go's HTTP server, as in kubectl proxy, discards the rest of an upload when the
  // response begins.
  const count = 'count=$(head -c "$CONTENT_LENGTH" | wc -c); echo Content-Type: text/plain; echo; echo $count';
  const script = `mkdir -p /www/cgi-bin; echo '${PAGE}' > /www/index.html
    printf '#!/bin/sh\\n%s\\n' '${count}' > /www/cgi-bin/count; chmod +x /www/cgi-bin/count
    httpd -p 8080 -h /www; ${WAIT}`;
  const readinessProbe = { httpGet: { port: 8080, path: '/index.html' }, periodSeconds: 1 };
  const app = { name: 'app', script, readinessProbe, ports: [{ containerPort: 8080 }] };
  await lifepod.apply(pod('web', { app: [app], labels: { app: 'web' } }));
  const ports = [{ port: 80, targetPort: 8080 }];
  const spec = { selector: { app: 'web' }, ports };
  await lifepod.apply({ apiVersion: 'v1', kind: 'Service', metadata: { name: 'web' }, spec });
  await record.until('web', isReady);
  await lifepod.until(['get', 'endpoints', '-w'], (line) => /^web .*:8080/.test(line));
  const proxy = startClient(lifepod, KUBECTL, ['proxy', '--port=0']);
  try {
    const [, address] = await proxy.printed(/^Starting to serve on (\S+)/m);
    const base = `/api/v1/namespaces/${lifepod.namespace}`;
    const page = await fetch(`http://${address}${base}/services/web/proxy/`);
    expect(await page.text()).toBe(`<a href="${base}/services/web/proxy/next">next</a>\n`);
    const body = 'x'.repeat(100_000);
    const counted = await fetch(`http://${address}${base}/pods/web/proxy/cgi-bin/count`, { method: 'POST', body });
    expect([counted.status, (await counted.text()).trim()]).toEqual([200, '100000']);
    expect(await (await fetch(`http://${address}/readyz`)).text()).toBe('ok');
  } finally {
    proxy.kill('SIGTERM');
    await proxy.ended;
  }
});

test('kubectl cluster-info prints the address of the API server', async () => {
  const { clusters } = await lifepod.kubectlOk('config', 'view', '-o', 'json').then(JSON.parse);
  const [{ cluster }] = clusters as [{ cluster: { server: string } }];
  const printed = stripVTControlCharacters(await lifepod.kubectlOk('cluster-info'));
  expect(printed).toMatch(new RegExp(`^Kubernetes control plane is running at ${cluster.server}$`, 'm'));
});
