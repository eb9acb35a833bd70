import { request } from 'node:https';
import { beforeAll, expect, test } from 'vitest';
import { pod } from '../../support/manifests.ts';
import { lifepod, useOwnEngine } from '../../support/own-engine.ts';
import { readMetrics } from '../../support/prometheus.ts';

let server: string;
useOwnEngine();
beforeAll(async () => {
  server = (await lifepod.kubectlOk('config', 'view', '-o', 'jsonpath={.clusters[0].cluster.server}')).trim();
});

/** The request has no client certificate. */
const anonymous = (path: string): Promise<{ code: number; body: string }> =>
  new Promise((resolve, reject) => {
    const asked = request(`${server}${path}`, { rejectUnauthorized: false }, (response) => {
      let body = '';
      response.on('data', (chunk: Buffer) => {
        body += chunk.toString();
      });
      response.on('end', () => resolve({ code: response.statusCode ?? 0, body }));
    });
    asked.on('error', reject);
    asked.end();
  });

test('kubectl version and cluster-info work', async () => {
  const { kubeletVersion } = JSON.parse(await lifepod.kubectlOk('get', 'nodes', '-o', 'json')).items[0].status.nodeInfo;
  expect(kubeletVersion).toMatch(/^v1\.33\.\d+\+lifepod\.\d/);
  expect(await lifepod.kubectlOk('version')).toContain(`Server Version: ${kubeletVersion}\n`);
  expect(await lifepod.kubectlOk('cluster-info')).toContain(`is running at`);
});

test('kubectl api-resources lists every kind with its short names', async () => {
  const text = await lifepod.kubectlOk('api-resources');
  for (const line of [
    /^configmaps +cm +v1 +true +ConfigMap$/m,
    /^events +ev +v1 +true +Event$/m,
    /^namespaces +ns +v1 +false +Namespace$/m,
    /^nodes +no +v1 +false +Node$/m,
    /^pods +po +v1 +true +Pod$/m,
    /^secrets +v1 +true +Secret$/m,
    /^serviceaccounts +sa +v1 +true +ServiceAccount$/m,
    /^services +svc +v1 +true +Service$/m,
    /^endpoints +ep +v1 +true +Endpoints$/m,
    /^endpointslices +discovery.k8s.io\/v1 +true +EndpointSlice$/m,
    /^priorityclasses +pc +scheduling\.k8s\.io\/v1 +false +PriorityClass$/m,
    /^clusterroles +rbac\.authorization\.k8s\.io\/v1 +false +ClusterRole$/m,
    /^rolebindings +rbac\.authorization\.k8s\.io\/v1 +true +RoleBinding$/m,
    /^selfsubjectaccessreviews +authorization\.k8s\.io\/v1 +false +SelfSubjectAccessReview$/m,
    /^certificatesigningrequests +csr +certificates\.k8s\.io\/v1 +false +CertificateSigningRequest$/m,
    /^leases +coordination\.k8s\.io\/v1 +true +Lease$/m,
    /^events +ev +events\.k8s\.io\/v1 +true +Event$/m,
  ]) {
    expect(text).toMatch(line);
  }
});

test('kubectl get nodes shows the node Ready, with its version, runtime, addresses and capacity', async () => {
  await lifepod.kubectlOk('wait', '--for=condition=Ready', 'node/node-1', '--timeout=30s');
  expect(await lifepod.kubectlOk('get', 'nodes')).toMatch(/^node-1 +Ready +\S+ +\S+ +v1\.33\./m);
  expect(await lifepod.kubectlOk('get', 'nodes', '-o', 'wide')).toMatch(/ containerd:\/\/\d/);
  const node = await lifepod.get<{ status: { capacity: Record<string, string>; addresses: object[] } }>(
    'node',
    'node-1',
  );
  expect(Number(node.status.capacity['cpu'])).toBeGreaterThan(0);
  expect(node.status.capacity['memory']).toMatch(/^\d+Ki$/);
  expect(node.status.addresses).toContainEqual({ type: 'Hostname', address: 'node-1' });
  expect(await lifepod.kubectlOk('describe', 'node', 'node-1')).toMatch(/Ready +True/);
});

test('a cluster has its system namespaces, and a new namespace gets its default ServiceAccount', async () => {
  const text = await lifepod.kubectlOk('get', 'ns');
  for (const name of ['default', 'kube-system', 'kube-public', 'kube-node-lease']) {
    expect(text).toMatch(new RegExp(`^${name} +Active `, 'm'));
  }
  expect(await lifepod.kubectlOk('create', 'ns', 'team-a')).toBe('namespace/team-a created\n');
  await lifepod.kubectlOk('wait', '--for=create', 'serviceaccount/default', '-n', 'team-a', '--timeout=30s');
});

test('deleting a namespace deletes its Pods', async () => {
  await lifepod.kubectlOk('create', 'ns', 'short');
  await lifepod.kubectlOk('wait', '--for=create', 'serviceaccount/default', '-n', 'short', '--timeout=30s');
  const manifest = pod('inside');
  await lifepod.apply({ ...manifest, metadata: { name: 'inside', namespace: 'short' } });
  await lifepod.kubectlOk('wait', '--for=condition=Ready', 'pod/inside', '-n', 'short', '--timeout=60s');
  await lifepod.kubectlOk('delete', 'ns', 'short', '--timeout=60s');
  expect((await lifepod.kubectl('get', 'ns', 'short')).stderr).toContain('namespaces "short" not found');
});

test('a Service gets a cluster IP, and its name resolves in a Pod, in each form', async () => {
  await lifepod.kubectlOk('create', 'service', 'clusterip', 'web', '--tcp=80:8080');
  const ip = await lifepod.kubectlOk('get', 'service', 'web', '-o', 'jsonpath={.spec.clusterIP}');
  expect(ip).toMatch(/^10\./);
  // nslookup of busybox does not use the search list for names with a dot; ping resolves like other programs. The ping gets no reply.
  const forms = 'web web.default web.default.svc web.default.svc.cluster.local';
  const script = `nslookup web.default.svc.cluster.local; for name in ${forms}; do ping -c 1 -W 1 $name; done; true`;
  await lifepod.apply(pod('resolver', { app: [{ name: 'app', script }], spec: { restartPolicy: 'Never' } }));
  await lifepod.kubectlOk('wait', '--for=jsonpath={.status.phase}=Succeeded', 'pod/resolver', '--timeout=60s');
  const log = await lifepod.kubectlOk('logs', 'resolver');
  for (const name of ['web', 'web.default', 'web.default.svc', 'web.default.svc.cluster.local']) {
    expect(log).toContain(`PING ${name} (${ip})`);
  }
  expect(log).toContain(`Address: ${ip}`);
  expect(await lifepod.kubectlOk('get', 'svc', 'kubernetes')).toMatch(
    /^kubernetes +ClusterIP +10\.\S+ +<none> +443\/TCP /m,
  );
});

test('objects that every cluster has are restored at once after kubectl deleted or changed them', async () => {
  const read = () => lifepod.get<{ metadata: { uid: string }; spec: object }>('svc', 'kubernetes');
  const first = await read();
  await lifepod.kubectlOk('delete', 'svc', '--all');
  await lifepod.kubectlOk('wait', '--for=create', 'svc/kubernetes', '--timeout=60s');
  const second = await read();
  expect(second.spec).toEqual(first.spec);
  expect(second.metadata.uid).not.toBe(first.metadata.uid);

  await lifepod.kubectlOk('patch', 'svc', 'kubernetes', '-p', '{"spec":{"type":"NodePort"}}');
  await lifepod.kubectlOk('wait', '--for=jsonpath={.spec.type}=ClusterIP', 'svc/kubernetes', '--timeout=60s');
  expect((await read()).spec).toEqual(first.spec);

  await lifepod.kubectlOk('delete', 'namespace', 'kube-node-lease');
  await lifepod.kubectlOk('wait', '--for=create', 'namespace/kube-node-lease', '--timeout=60s');
  const lease = ['lease/node-1', '-n', 'kube-node-lease'];
  await lifepod.kubectlOk('wait', '--for=create', ...lease, '--timeout=60s');
});

test('the lifetime of an Event counts from its write, not from the times in it', async () => {
  const event = (name: string, time: string): object => ({
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name, namespace: 'default' },
    involvedObject: { namespace: 'default' },
    eventTime: `${time}.000000Z`,
    firstTimestamp: `${time}Z`,
    lastTimestamp: `${time}Z`,
    action: 'Testing',
    reason: 'Testing',
    type: 'Normal',
    reportingComponent: 'example.com/test',
    reportingInstance: 'test',
  });
  const columns = 'custom-columns=T:type,N:object.metadata.name';
  const watch = ['get', 'events', '--watch', '--output-watch-events', '--no-headers', '-o', columns];
  await lifepod.apply(event('begin', '2020-01-01T00:00:00'));
  const write = async (): Promise<void> => {
    await lifepod.apply(event('old', '2020-01-01T00:00:00'));
    await lifepod.kubectl('annotate', 'event/old', 'seen=again');
    await lifepod.apply(event('end', '2099-01-01T00:00:00'));
  };
  const [seen] = await Promise.all([lifepod.until(watch, (line) => /ADDED +end$/.test(line)), write()]);
  expect(seen.filter((line) => line.startsWith('DELETED'))).toEqual([]);
  for (const name of ['begin', 'old', 'end']) await lifepod.kubectlOk('get', 'event', name);
});

test('the metric of restarts is kept by namespace, and removed with the namespace', async () => {
  const counted = async (): Promise<string[]> => {
    const families = readMetrics(await lifepod.kubectlOk('get', '--raw', '/metrics'));
    const { samples } = families.get('lifepod_container_restarts_total') ?? {
      samples: [],
    };
    return samples.map(({ labels }) => labels['namespace'] ?? '');
  };
  const before = await counted();
  await lifepod.kubectlOk('create', 'namespace', 'restarting');
  const spec = { containers: [{ name: 'app', image: 'busybox:1.28', command: ['false'] }] };
  await lifepod.apply({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'fails', namespace: 'restarting' }, spec });
  const columns = 'custom-columns=R:.status.containerStatuses[0].restartCount';
  const watch = ['get', 'pods', 'fails', '-n', 'restarting', '-w', '--no-headers', '-o', columns];
  await lifepod.until(watch, (line) => Number(line) >= 1);
  expect(await counted()).toEqual([...before, 'restarting']);
  await lifepod.kubectlOk('delete', 'namespace', 'restarting');
  expect(await counted()).toEqual(before);
});

test('ConfigMaps, Secrets and Leases are stored', async () => {
  await lifepod.kubectlOk('create', 'configmap', 'settings', '--from-literal=color=blue');
  await lifepod.kubectlOk('create', 'secret', 'generic', 'token', '--from-literal=key=value');
  expect(await lifepod.kubectlOk('get', 'configmap', 'settings', '-o', 'jsonpath={.data.color}')).toBe('blue');
  expect(await lifepod.kubectlOk('get', 'secret', 'token', '-o', 'jsonpath={.data.key}')).toBe('dmFsdWU=');
  expect(await lifepod.kubectlOk('get', 'lease', 'node-1', '-n', 'kube-node-lease', '-o', 'name')).toBe(
    'lease.coordination.k8s.io/node-1\n',
  );
});

test('a Pod reads its ServiceAccount: token, ca.crt and namespace', async () => {
  const script =
    'exec 2>&1; cd /var/run/secrets/kubernetes.io/serviceaccount && cat namespace && head -1 ca.crt && wc -c <token && touch x';
  await lifepod.apply(pod('reader', { app: [{ name: 'app', script }], spec: { restartPolicy: 'Never' } }));
  await lifepod.kubectlOk('wait', '--for=jsonpath={.status.phase}=Failed', 'pod/reader', '--timeout=60s');
  const log = await lifepod.kubectlOk('logs', 'reader');
  expect(log).toMatch(/^default-----BEGIN CERTIFICATE-----\n\d{3,}\n/);
  expect(log).toContain('Read-only file system');
});

test('anonymous requests get 401, except for health and version', async () => {
  expect((await anonymous('/api/v1/namespaces/default/pods')).code).toBe(401);
  expect((await anonymous('/apis')).code).toBe(401);
  for (const path of ['/healthz', '/readyz', '/livez'])
    expect(await anonymous(path)).toMatchObject({ code: 200, body: 'ok' });
  expect(JSON.parse((await anonymous('/version')).body)).toMatchObject({ major: '1', minor: '33' });
});

test('lists are paginated and selected by labels and fields', async () => {
  for (const name of ['a', 'b', 'c']) await lifepod.kubectlOk('create', 'configmap', `list-${name}`);
  await lifepod.kubectlOk('label', 'configmap', 'list-b', 'chosen=yes');
  const all = await lifepod.kubectlOk('get', 'configmap', '--chunk-size=1', '-o', 'name');
  expect(all).toMatch(/list-a\n[\s\S]*list-b\n[\s\S]*list-c\n/);
  expect(await lifepod.kubectlOk('get', 'configmap', '-l', 'chosen', '-o', 'name')).toBe('configmap/list-b\n');
  expect(await lifepod.kubectlOk('get', 'configmap', '--field-selector=metadata.name=list-c', '-o', 'name')).toBe(
    'configmap/list-c\n',
  );
});

test('an update with an old resourceVersion is a Conflict', async () => {
  await lifepod.kubectlOk('create', 'configmap', 'raced');
  const old = await lifepod.get('configmap', 'raced');
  await lifepod.kubectlOk('label', 'configmap', 'raced', 'won=yes');
  const result = await lifepod.kubectlInput(JSON.stringify(old), 'replace', '-f', '-');
  expect(result.code).toBe(1);
  expect(result.stderr).toContain('(Conflict)');
  expect(result.stderr).toContain(
    'the object has been modified; please apply your changes to the latest version and try again',
  );
});

test('lifepod status prints what runs, with versions and memory', async () => {
  const text = (await lifepod.cli('status')).stdout;
  expect(text).toMatch(/^lifepod +\d+\.\d+\.\d+, PID \d+/m);
  expect(text).toMatch(/v1\.33\./);
  expect(text).toMatch(/containerd:\/\/\d/);
  expect(text).toMatch(/MiB/);
});
