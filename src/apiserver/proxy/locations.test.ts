import { beforeEach, describe, expect, test } from 'vitest';
import type { Endpoints, Node, Pod, Service } from '../../api/generated/types.ts';
import { ENDPOINTS, NODES, PODS, SERVICES } from '../../api/resources.ts';
import { type RegistryBackend, registryBackend } from '../../client/registry-fixture.ts';
import { locateNode, locatePod, locateService, parseTarget, type Read } from './locations.ts';

test.each([
  ['x', { scheme: 'http', name: 'x', port: '' }],
  ['x:80', { scheme: 'http', name: 'x', port: '80' }],
  ['https:x:web', { scheme: 'https', name: 'x', port: 'web' }],
  [':x:', { scheme: 'http', name: 'x', port: '' }],
  ['ftp:x:80', undefined],
  ['http::80', undefined],
  ['a:b:c:d', undefined],
])('the name %s means %j', (id, expected) => {
  expect(parseTarget(id)).toEqual(expected);
});

let api: RegistryBackend;
let read: Read;
beforeEach(async () => {
  api = await registryBackend();
  read = (ref, name) => api.get(ref, 'a', name);
});

async function createPod(name: string, ip: string | undefined, ports: number[] = []): Promise<void> {
  const containers = [{ name: 'app', image: 'x', ports: ports.map((containerPort) => ({ containerPort })) }];
  await api.set<Pod>(PODS, { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'a' }, spec: { containers } });
  if (ip !== undefined) await api.setStatus(PODS, 'a', name, { podIP: ip, podIPs: [{ ip }] });
}

describe('a Pod', () => {
  test('the proxy of a Pod leads to its first declared port unless the request names another one', async () => {
    await createPod('web', '10.1.0.5', [8080, 9090]);
    expect(await locatePod('web', read)).toEqual({ scheme: 'http', ip: '10.1.0.5', port: '8080' });
    expect(await locatePod('https:web:9443', read)).toEqual({ scheme: 'https', ip: '10.1.0.5', port: '9443' });
  });

  test('the proxy of a Pod without declared ports leads to the default port', async () => {
    await createPod('web', 'fd00::5');
    expect(await locatePod('web', read)).toEqual({ scheme: 'http', ip: 'fd00::5' });
  });

  test.each([undefined, '127.0.0.1', '::1', '169.254.169.254', 'fe80::1', '0.0.0.0'])(
    'the proxy of a Pod with the address %s is refused',
    async (ip) => {
      await createPod('web', ip, [80]);
      await expect(locatePod('web', read)).rejects.toMatchObject({ code: 400, message: 'address not allowed' });
    },
  );

  test('the proxy of a Pod that does not exist is reported as NotFound', async () => {
    await expect(locatePod('none', read)).rejects.toMatchObject({ code: 404, message: 'pods "none" not found' });
  });
});

describe('a Node', () => {
  const readNode: Read = (ref, name) => api.get(ref, undefined, name);
  const createNode = (...ips: string[]) => {
    const addresses = [{ type: 'Hostname', address: 'n' }, ...ips.map((address) => ({ type: 'InternalIP', address }))];
    return api.set<Node>(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n' }, status: { addresses } });
  };

  test.each(['n', 'n:', 'n:10250', 'https:n:10250'])('the proxy of Node %s leads to its documents', async (id) => {
    await createNode('192.0.2.1');
    expect(await locateNode(id, readNode, 6443)).toEqual({ node: 'n' });
  });

  test('the proxy of a Node with a port leads to its first internal address', async () => {
    await createNode('192.0.2.1', 'fd00::1');
    expect(await locateNode('n:9100', readNode, 6443)).toEqual({ scheme: 'http', ip: '192.0.2.1', port: '9100' });
    expect(await locateNode('https:n:9100', readNode, 6443)).toMatchObject({ scheme: 'https' });
  });

  test.each([
    ['n:6443', '192.0.2.1', 'port not allowed'],
    ['n:06443', '192.0.2.1', 'port not allowed'],
    ['n:9100', '127.0.0.1', 'address not allowed'],
    ['n:9100', '169.254.169.254', 'address not allowed'],
    ['n:9100', '', 'address not allowed'],
    ['a:b:c:d', '192.0.2.1', 'invalid node request "a:b:c:d"'],
  ])('named as %s with the address %j is refused', async (id, ip, message) => {
    await createNode(...(ip === '' ? [] : [ip]));
    await expect(locateNode(id, readNode, 6443)).rejects.toMatchObject({ code: 400, message });
  });

  test('the proxy of a Node that does not exist is reported as NotFound', async () => {
    await expect(locateNode('none:80', readNode, 6443)).rejects.toMatchObject({ code: 404 });
  });
});

describe('a Service', () => {
  async function createService(
    ports: NonNullable<Service['spec']>['ports'],
    subsets: Endpoints['subsets'],
  ): Promise<void> {
    const metadata = { name: 'x', namespace: 'a' };
    await api.set<Service>(SERVICES, { apiVersion: 'v1', kind: 'Service', metadata, spec: { ports } });
    await api.set<Endpoints>(ENDPOINTS, { apiVersion: 'v1', kind: 'Endpoints', metadata, subsets });
  }
  const address = (ip: string, pod: string) => ({ ip, targetRef: { kind: 'Pod', namespace: 'a', name: pod } });

  test('the proxy of a Service leads to each of its ready endpoints, by the number or the name of a port', async () => {
    await createPod('one', '10.1.0.5');
    await createPod('two', '10.1.0.6');
    await createPod('unready', '10.1.0.7');
    const addresses = [address('10.1.0.5', 'one'), address('10.1.0.6', 'two')];
    const notReadyAddresses = [address('10.1.0.7', 'unready')];
    const ports = [
      { name: 'web', port: 8080 },
      { name: 'admin', port: 9090 },
    ];
    await createService(
      [
        { name: 'web', port: 80 },
        { name: 'admin', port: 81 },
      ],
      [{ addresses, notReadyAddresses, ports }],
    );
    const ips = new Set<string>();
    for (let round = 0; round < 200; round++) ips.add((await locateService('x:80', read)).ip);
    expect([...ips].sort()).toEqual(['10.1.0.5', '10.1.0.6']);
    expect(await locateService('https:x:admin', read)).toMatchObject({ scheme: 'https', port: '9090' });
    await expect(locateService('x:82', read)).rejects.toMatchObject({
      code: 503,
      message: 'no service port 82 found for service "x"',
    });
    await expect(locateService('x:other', read)).rejects.toMatchObject({
      code: 503,
      message: 'no endpoints available for service "x:other"',
    });
  });

  test('the proxy of a Service without endpoints is reported as unavailable', async () => {
    await createService([{ port: 80 }], []);
    await expect(locateService('x', read)).rejects.toMatchObject({
      code: 503,
      message: 'no endpoints available for service "x"',
    });
  });

  test('the proxy of a Service leads only to addresses of Pods of its namespace', async () => {
    await createPod('one', '10.1.0.5');
    await createPod('local', '127.0.0.1');
    const addresses = [
      { ip: '10.1.0.8' },
      address('10.1.0.9', 'one'),
      address('10.1.0.5', 'none'),
      { ip: '10.1.0.5', targetRef: { kind: 'Pod', namespace: 'b', name: 'one' } },
    ];
    await createService([{ port: 80 }], [{ addresses, ports: [{ port: 80 }] }]);
    await expect(locateService('x:80', read)).rejects.toMatchObject({ code: 503 });
  });
});
