import { randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { SERVICES } from '../../src/api/resources.ts';
import { registryBackend } from '../../src/client/registry-fixture.ts';
import { clientOf } from '../../src/client/typed-client.ts';
import type { KubeObject } from '../../src/machinery/meta.ts';
import { startTestDns } from '../../src/network/dns/dns-fixture.ts';
import { leasedAddresses } from '../../src/network/pod-network/leases.ts';
import { ipamDirectory, networkNames } from '../../src/network/pod-network/names.ts';
import { type NetworkOptions, setUpNetwork } from '../../src/network/pod-network/pod-network.ts';
import { tearDownNetwork } from '../../src/network/pod-network/tear-down.ts';
import { systemTimers } from '../../src/platform/node-js.ts';
import { runCommand, runCommandOk } from '../../src/platform/processes.ts';
import { silentLog } from '../../src/platform/silent-log.ts';
import { attach, detach, PLUGINS } from '../support/cni.ts';
import { inside, reaches } from '../support/network-namespace.ts';
import { type Datagram, listenOn, routeLoopbackOutside } from '../support/pod-packets.ts';

const controller = new AbortController();
const { signal } = controller;
const unique = randomBytes(3).toString('hex');
const namespaces: [string, string] = [`cni-${unique}-a`, `cni-${unique}-b`];
const hostile = `cni-${unique}-c`;

let options: NetworkOptions;

beforeAll(async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'lifepod-network-'));
  options = {
    dataDir,
    instance: dataDir,
    podCidr: '10.213.77.0/24',
    serviceCidr: '10.214.77.0/24',
    serviceIps: ['10.214.77.10', '10.214.77.1'],
    pluginDirectory: PLUGINS,
    timers: systemTimers(),
    log: silentLog,
    signal,
  };
});
afterAll(async () => {
  controller.abort();
  await tearDownNetwork({ ...options, runtimeFolder: options.dataDir, signal: new AbortController().signal });
  for (const name of [...namespaces, hostile]) await runCommand('ip', ['netns', 'delete', name]);
  await rm(options.dataDir, { recursive: true, force: true });
});

async function linkLocalAddress(link: string): Promise<string> {
  const shown = await runCommandOk('ip', ['-json', '-6', 'address', 'show', 'dev', link, 'scope', 'link']);
  const [found] = JSON.parse(shown) as { addr_info: { local: string }[] }[];
  return found?.addr_info[0]?.local ?? '';
}

const linkTo = async (address: string): Promise<string> =>
  (JSON.parse(await runCommandOk('ip', ['-json', 'route', 'get', address])) as { dev: string }[])[0]?.dev ?? '';

describe('the network of Pods', () => {
  const addresses: string[] = [];

  it('the network connects sandboxes with each other and with the node', async () => {
    const network = await setUpNetwork(options);
    const { gateway, bridge } = network;
    expect(gateway).toBe('10.213.77.1');
    expect(bridge).toMatch(/^lp[0-9a-f]{8}$/);
    for (const name of namespaces) {
      await runCommandOk('ip', ['netns', 'add', name]);
      addresses.push(...(await attach(options, { name })));
      await network.attached(name);
    }
    expect(new Set(addresses).size).toBe(2);
    expect(addresses.every((address) => address.startsWith('10.213.77.'))).toBe(true);
    for (const target of [addresses[1] as string, gateway, ...options.serviceIps]) {
      expect(await reaches(namespaces[0], target), target).toBe(true);
    }
    expect(await reaches(namespaces[0], '10.213.77.99')).toBe(false);
    expect((await leasedAddresses(options)).get(addresses[0] as string)).toBe(namespaces[0]);
  });

  it('setting up the network again keeps the connections of sandboxes', async () => {
    // Without the table, the network is in the state after a crash between two steps of the setup.
    const { table } = networkNames(options);
    await runCommandOk('nft', ['delete', 'table', 'inet', table]);
    await setUpNetwork(options);
    const rules = await runCommandOk('nft', ['list', 'table', 'inet', table]);
    await setUpNetwork(options);
    expect(await reaches(namespaces[0], addresses[1] as string)).toBe(true);
    expect(await runCommandOk('nft', ['list', 'table', 'inet', table])).toBe(rules);
    for (const address of addresses) expect(rules).toContain(`"${await linkTo(address)}" . ${address}`);
  });

  it("traffic that leaves the range of Pods is masqueraded as the node's", async () => {
    // The namespace `world` represents a machine outside the node, which has no route to the Pods.
    const world = `lpw-${unique}`;
    await runCommandOk('ip', ['netns', 'add', world]);
    try {
      await runCommandOk('ip', ['link', 'add', `lpw${unique}`, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', world]);
      await runCommandOk('ip', ['address', 'add', '10.215.77.1/24', 'dev', `lpw${unique}`]);
      await runCommandOk('ip', ['link', 'set', `lpw${unique}`, 'up']);
      await inside(world, 'ip', 'address', 'add', '10.215.77.2/24', 'dev', 'eth0');
      await inside(world, 'ip', 'link', 'set', 'eth0', 'up');
      expect(await reaches(namespaces[0], '10.215.77.2')).toBe(true);
    } finally {
      await runCommand('ip', ['link', 'delete', `lpw${unique}`]);
      await runCommand('ip', ['netns', 'delete', world]);
    }
  });

  it('Pods reach no loopback address of the node, and send only from their own addresses', async () => {
    const network = await setUpNetwork(options);
    const { gateway } = network;
    // This namespace is separate, because later tests need the loopback interface of the other namespaces.
    await runCommandOk('ip', ['netns', 'add', hostile]);
    // Without the detection of duplicate addresses, the link-local address of the namespace can be used at once.
    for (const scope of ['all', 'default']) {
      await inside(hostile, 'sh', '-c', `echo 0 > /proc/sys/net/ipv6/conf/${scope}/accept_dad`);
    }
    const [address = ''] = await attach(options, { name: hostile });
    await network.attached(hostile);
    const file = `/run/netns/${hostile}`;
    await routeLoopbackOutside(file, gateway);
    const linkLocal = await linkLocalAddress(await linkTo(address));
    await inside(hostile, 'ip', '-6', 'route', 'delete', 'table', 'local', 'local', '::1', 'dev', 'lo');
    await inside(hostile, 'ip', '-6', 'route', 'add', '::1', 'via', linkLocal, 'dev', 'eth0');
    for (const other of [addresses[0], '192.0.2.77']) {
      await inside(hostile, 'ip', 'address', 'add', `${other}/32`, 'dev', 'eth0');
    }
    const datagrams: Datagram[] = [
      { to: '127.0.0.1', text: 'to loopback' },
      { to: '127.0.0.53', text: 'to another loopback address' },
      { to: gateway, from: '127.0.0.9', text: 'from loopback' },
      { to: '::1', text: 'to loopback by IPv6' },
      { to: gateway, from: addresses[0] as string, text: "from another Pod's address" },
      { to: gateway, from: '192.0.2.77', text: 'from a foreign address' },
      { to: gateway, text: 'to the gateway' },
    ];
    await using listeners = await listenOn(gateway, ['127.0.0.1', '127.0.0.53', '::1']);
    expect(await listeners.arrived(file, datagrams)).toEqual(['to the gateway']);
    await detach(options, { name: hostile });
    await runCommandOk('ip', ['netns', 'delete', hostile]);
  });

  it("DNS resolves Services for busybox's nslookup", async () => {
    const backend = await registryBackend({ serviceCidr: options.serviceCidr });
    const dns = await startTestDns(clientOf(backend), { addresses: options.serviceIps.slice(0, 1), port: 53 });
    onTestFinished(() => dns.remove());
    const lookUp = () =>
      inside(
        namespaces[0],
        'busybox',
        'nslookup',
        'myservice.default.svc.cluster.local',
        options.serviceIps[0] as string,
      );
    const before = await lookUp();
    expect(before.code, before.stdout).not.toBe(0);
    expect(before.stdout).toContain('NXDOMAIN');
    await backend.set(SERVICES, {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'myservice', namespace: 'default' },
      spec: { clusterIP: '10.214.77.20', ports: [{ port: 80 }] },
    } as KubeObject);
    await expect.poll(async () => (await lookUp()).stdout, { timeout: 30_000 }).toContain('Address: 10.214.77.20');
  });

  it('ranges that are in use are refused, with the interface that uses them', async () => {
    const { bridge } = networkNames(options);
    const other = { ...options, instance: 'another', dataDir: join(options.dataDir, 'other') };
    await expect(setUpNetwork(other)).rejects.toThrow(
      `the Pod range 10.213.77.0/24 overlaps the route 10.213.77.0/24 of the interface ${bridge} of another engine of lifepod: ` +
        'choose another with --pod-cidr',
    );
    await expect(setUpNetwork({ ...other, podCidr: '10.214.0.0/16' })).rejects.toThrow('and the Service range');
    await expect(setUpNetwork({ ...other, podCidr: '10.213.78.0/24', serviceCidr: '10.213.0.0/16' })).rejects.toThrow(
      'overlap',
    );
  });

  it('the network is set up while the runtime detaches a sandbox, whose address is released before its interface is deleted', async () => {
    const lease = join(ipamDirectory(options.dataDir), networkNames(options).network, addresses[0] as string);
    const content = await readFile(lease);
    await rm(lease);
    await setUpNetwork(options);
    await writeFile(lease, content);
  });

  it('tearing the network down leaves nothing behind', async () => {
    const { bridge, table } = networkNames(options);
    const link = await linkTo(addresses[0] as string);
    await detach(options, { name: namespaces[1] });
    // The first sandbox still has its interface and address, as after a crash.
    expect((await leasedAddresses(options)).size).toBe(1);
    controller.abort();
    const { signal: cleaning } = new AbortController();
    await tearDownNetwork({ ...options, runtimeFolder: options.dataDir, signal: cleaning });
    await tearDownNetwork({ ...options, runtimeFolder: options.dataDir, signal: cleaning });
    const links = await runCommandOk('ip', ['-oneline', 'link', 'show']);
    expect(links).not.toContain(bridge);
    expect(links).not.toContain(link);
    expect(await runCommandOk('nft', ['list', 'tables'])).not.toContain(table);
    expect(await runCommandOk('ip', ['netns', 'list'])).not.toContain(namespaces[0]);
    expect((await leasedAddresses(options)).size).toBe(0);
  });
});
