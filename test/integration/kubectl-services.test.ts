import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type KubectlFixture, startKubectlFixture } from './kubectl-fixture.ts';

let fixture: KubectlFixture;
beforeAll(async () => {
  fixture = await startKubectlFixture();
});
afterAll(() => fixture?.close());

describe('kubectl create service', () => {
  test('creates each type', async () => {
    const { ok, get } = fixture;
    await ok('create', 'service', 'clusterip', 'plain', '--tcp=80:8080', '--tcp=443');
    await ok('create', 'service', 'nodeport', 'nodes', '--tcp=80', '--node-port=30023');
    await ok('create', 'service', 'loadbalancer', 'balanced', '--tcp=5432');
    await ok('create', 'service', 'externalname', 'elsewhere', '--external-name', 'example.com');
    await ok('create', 'service', 'clusterip', 'headless', '--clusterip=None');
    expect(await ok('get', 'services')).toMatch(/^nodes +NodePort +10\.99\.0\.\d+ +<none> +80:30023\/TCP +\d+s$/m);
    expect(await ok('get', 'services')).toMatch(
      /^balanced +LoadBalancer +10\.99\.0\.\d+ +<pending> +5432:3\d{4}\/TCP +\d+s$/m,
    );
    expect((await get('svc/plain')).spec).toMatchObject({ ipFamilies: ['IPv4'], ipFamilyPolicy: 'SingleStack' });
    const described = await ok('describe', 'service', 'nodes');
    expect(described).toMatch(/^IP Family Policy: +SingleStack$/m);
    expect(described).toMatch(/^NodePort: +80 +30023\/TCP$/m);
  });

  test.each([
    [
      'an address that is in use',
      ['clusterip', 'a', '--tcp=80', '--clusterip=10.99.0.1'],
      'provided IP is already allocated',
    ],
    [
      'an address in no range',
      ['clusterip', 'a', '--tcp=80', '--clusterip=10.98.0.1'],
      'the provided network does not match the current range',
    ],
    ['a text that is no address', ['clusterip', 'a', '--tcp=80', '--clusterip=x'], 'must be a valid IP address'],
    [
      'a node port in no range',
      ['nodeport', 'a', '--tcp=80', '--node-port=80'],
      'The range of valid ports is 30000-32767',
    ],
    ['a name that is not valid', ['clusterip', '1a', '--tcp=80'], 'a DNS-1035 label must consist of'],
  ])('refuses %s', async (_, args, message) => {
    expect(await fixture.refused(['create', 'service', ...args])).toContain(message);
  });

  test('refuses a node port that is in use', async () => {
    const args = ['create', 'service', 'nodeport', 'again', '--tcp=80', '--node-port=30023'];
    expect(await fixture.refused(args)).toContain(
      'spec.ports[0].nodePort: Invalid value: 30023: provided port is already allocated',
    );
  });
});

test('kubectl expose creates a Service for a Deployment, and warns about nothing', async () => {
  const { ok, kubectl, get } = fixture;
  await ok('create', 'deployment', 'web', '--image=busybox:1.28', '--port=8080');
  const { code, err } = await kubectl([
    'expose',
    'deployment',
    'web',
    '--port=80',
    '--target-port=http',
    '--type=NodePort',
    '--session-affinity=ClientIP',
  ]);
  expect({ code, err }).toEqual({ code: 0, err: '' });
  expect((await get('svc/web')).spec).toMatchObject({
    type: 'NodePort',
    selector: { app: 'web' },
    ports: [{ port: 80, targetPort: 'http', protocol: 'TCP', nodePort: expect.any(Number) }],
    sessionAffinityConfig: { clientIP: { timeoutSeconds: 10800 } },
  });
});

test('a change of the type releases and allocates addresses and ports', async () => {
  const { ok, get, refused } = fixture;
  await ok('create', 'service', 'nodeport', 'moving', '--tcp=80', '--node-port=30055');
  const patch = (spec: object) => ok('patch', 'service', 'moving', '--type=merge', '-p', JSON.stringify({ spec }));
  const { clusterIP } = (await get('svc/moving')).spec;
  expect(await ok('get', 'ipaddresses')).toMatch(new RegExp(`^${clusterIP} +services/default/moving +\\d+s$`, 'm'));
  await patch({ type: 'ClusterIP' });
  expect((await get('svc/moving')).spec.ports[0].nodePort).toBeUndefined();
  await ok('create', 'service', 'nodeport', 'other', '--tcp=80', '--node-port=30055');
  await patch({ type: 'ExternalName', externalName: 'example.com' });
  expect(await ok('get', 'ipaddresses')).not.toContain('default/moving');
  await patch({ type: 'LoadBalancer', externalTrafficPolicy: 'Local' });
  const { spec } = await get('svc/moving');
  expect(spec.healthCheckNodePort).toBeGreaterThanOrEqual(30_000);
  const changed = JSON.stringify({ spec: { clusterIP: '10.99.0.200', clusterIPs: ['10.99.0.200'] } });
  expect(await refused(['patch', 'service', 'moving', '--type=merge', '-p', changed])).toContain(
    'may not change once set',
  );
});

test('kubectl apply of an unchanged manifest keeps the addresses and ports', async () => {
  const { apply, get } = fixture;
  const manifest = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'applied' },
    spec: {
      type: 'NodePort',
      ports: [
        { name: 'dns', port: 53, protocol: 'UDP' },
        { name: 'dns-tcp', port: 53, protocol: 'TCP' },
      ],
    },
  };
  await apply(manifest);
  const { spec } = await get('svc/applied');
  expect(spec.ports[0].nodePort).toBe(spec.ports[1].nodePort);
  expect(await apply(manifest)).toContain('unchanged');
  expect((await get('svc/applied')).spec).toEqual(spec);
});

test('an additional ServiceCIDR provides addresses, and kubectl shows both', async () => {
  const { ok, apply, refused } = fixture;
  const cidr = (name: string, cidrs: string[]) => ({
    apiVersion: 'networking.k8s.io/v1',
    kind: 'ServiceCIDR',
    metadata: { name },
    spec: { cidrs },
  });
  await apply(cidr('more', ['10.98.0.0/24']));
  expect(await ok('get', 'servicecidrs')).toMatch(
    /^kubernetes +10\.99\.0\.0\/24 +\d+s\nmore +10\.98\.0\.0\/24 +\d+s$/m,
  );
  await ok('create', 'service', 'clusterip', 'far', '--tcp=80', '--clusterip=10.98.0.7');
  expect(await ok('get', 'ip', '10.98.0.7')).toMatch(/services\/default\/far/);
  expect(await refused(['create', '-f', '-'], JSON.stringify(cidr('bad', ['10.98.0.1/24'])))).toContain(
    'spec.cidrs[0]: Invalid value: "10.98.0.1/24": must not have bits set beyond the prefix length',
  );
});
