/** Tests the network of Pods with the real bridge, CNI plugins, nftables and busybox's resolver. */

import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SERVICES } from '../../src/api/resources.ts';
import { registryBackend, withInformers } from '../../src/client/registry-fixture.ts';
import { clientOf } from '../../src/client/typed-client.ts';
import type { KubeObject } from '../../src/machinery/meta.ts';
import { leasedAddresses, networkNames, setUpNetwork, tearDownNetwork } from '../../src/network/bridge.ts';
import { startDns } from '../../src/network/dns.ts';
import { systemTimers } from '../../src/platform/node-js.ts';
import { runCommand, runCommandOk } from '../../src/platform/processes.ts';
import { silentLog } from '../../src/platform/silent-log.ts';
import { type Datagram, listenOn, routeLoopbackOutside } from '../support/pod-packets.ts';

const PLUGINS = '/usr/lib/cni';
const controller = new AbortController();
const { signal } = controller;
const unique = randomBytes(3).toString('hex');
const namespaces = [`cni-${unique}-a`, `cni-${unique}-b`];

let dataDir: string;
let options: Parameters<typeof setUpNetwork>[0];

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'lifepod-network-'));
  options = {
    dataDir,
    instance: dataDir,
    podCidr: '10.213.77.0/24',
    serviceCidr: '10.214.77.0/24',
    dnsIp: '10.214.77.10',
    signal,
  };
});
afterAll(async () => {
  controller.abort();
  const { signal: cleaning } = new AbortController();
  await tearDownNetwork({ ...options, signal: cleaning });
  for (const name of namespaces) await runCommand('ip', ['netns', 'delete', name]);
  await rm(dataDir, { recursive: true, force: true });
});

/**
 * Calls each CNI plugin of the configuration with the result of the previous one, as libcni does. Resolves with the IP address that the
 * plugins have assigned.
 */
async function callPlugins(command: 'ADD' | 'DEL', namespace: string): Promise<string | undefined> {
  const file = join(networkNames(options).cniConfigDirectory, '10-lifepod.conflist');
  const list = JSON.parse(readFileSync(file, 'utf8')) as {
    cniVersion: string;
    name: string;
    plugins: { type: string }[];
  };
  let prevResult: { ips: { address: string }[] } | undefined;
  const plugins = command === 'ADD' ? list.plugins : list.plugins.toReversed();
  for (const plugin of plugins) {
    const input = JSON.stringify({ ...plugin, cniVersion: list.cniVersion, name: list.name, prevResult });
    const env = {
      PATH: process.env['PATH'],
      CNI_COMMAND: command,
      CNI_CONTAINERID: namespace,
      CNI_NETNS: `/run/netns/${namespace}`,
      CNI_IFNAME: 'eth0',
      CNI_PATH: PLUGINS,
    };
    const { code, stdout } = await runCommand(join(PLUGINS, plugin.type), [], { input, env });
    if (code !== 0) throw new Error(`${plugin.type}: ${stdout}`);
    if (stdout !== '') prevResult = JSON.parse(stdout);
  }
  return prevResult?.ips[0]?.address.split('/')[0];
}
const inside = (namespace: string | undefined, ...command: string[]) =>
  runCommand('ip', ['netns', 'exec', namespace ?? '', ...command]);

async function linkLocalAddress(link: string): Promise<string> {
  const shown = await runCommandOk('ip', ['-json', '-6', 'address', 'show', 'dev', link, 'scope', 'link']);
  const [found] = JSON.parse(shown) as { addr_info: { local: string }[] }[];
  return found?.addr_info[0]?.local ?? '';
}

describe('the network of Pods', () => {
  const addresses: string[] = [];

  it('the network connects sandboxes with each other and with the node', async () => {
    const { gateway, bridge } = await setUpNetwork(options);
    expect(gateway).toBe('10.213.77.1');
    expect(bridge).toMatch(/^lp[0-9a-f]{8}$/);
    for (const name of namespaces) {
      await runCommandOk('ip', ['netns', 'add', name]);
      addresses.push((await callPlugins('ADD', name)) as string);
    }
    expect(new Set(addresses).size).toBe(2);
    expect(addresses.every((address) => address.startsWith('10.213.77.'))).toBe(true);
    for (const target of [addresses[1] as string, gateway, options.dnsIp]) {
      const { code, stdout } = await inside(namespaces[0], 'busybox', 'ping', '-c', '1', '-W', '5', target);
      expect(code, stdout).toBe(0);
    }
    expect((await leasedAddresses(options)).get(namespaces[0] as string)).toBe(addresses[0]);
  });

  it('setting up the network again keeps the connections of sandboxes', async () => {
    // This is the state after a crash between two steps of the setup.
    const { table } = networkNames(options);
    await runCommandOk('nft', ['delete', 'table', 'ip', table]);
    await setUpNetwork(options);
    await setUpNetwork(options);
    const { code } = await inside(namespaces[0], 'busybox', 'ping', '-c', '1', '-W', '5', addresses[1] as string);
    expect(code).toBe(0);
    const rules = await runCommandOk('nft', ['list', 'table', 'ip', table]);
    expect(rules.match(/masquerade/g)).toHaveLength(1);
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
      const { code, stdout } = await inside(namespaces[0], 'busybox', 'ping', '-c', '1', '-W', '5', '10.215.77.2');
      expect(code, stdout).toBe(0);
    } finally {
      await runCommand('ip', ['link', 'delete', `lpw${unique}`]);
      await runCommand('ip', ['netns', 'delete', world]);
    }
  });

  it("Pods cannot reach the node's loopback addresses, even after a host port was used", async () => {
    const { gateway, bridge } = await setUpNetwork(options);
    // The portmap plugin enables this option for a host port, and never disables it.
    await writeFile(`/proc/sys/net/ipv4/conf/${bridge}/route_localnet`, '1');
    // This namespace is separate, because later tests need the loopback interface of the other namespaces.
    const hostile = `cni-${unique}-c`;
    namespaces.push(hostile);
    await runCommandOk('ip', ['netns', 'add', hostile]);
    await callPlugins('ADD', hostile);
    const file = `/run/netns/${hostile}`;
    await routeLoopbackOutside(file, gateway);
    const linkLocal = await linkLocalAddress(bridge);
    await inside(hostile, 'ip', '-6', 'route', 'delete', 'table', 'local', 'local', '::1', 'dev', 'lo');
    await inside(hostile, 'ip', '-6', 'route', 'add', '::1', 'via', linkLocal, 'dev', 'eth0');
    const datagrams: Datagram[] = [
      { to: '127.0.0.1', text: 'to loopback' },
      { to: '127.0.0.53', text: 'to another loopback address' },
      { to: gateway, from: '127.0.0.9', text: 'from loopback' },
      { to: '::1', text: 'to loopback by IPv6' },
      { to: gateway, text: 'to the gateway' },
    ];
    await using listeners = await listenOn(gateway, ['127.0.0.1', '127.0.0.53', '::1']);
    expect(await listeners.arrived(file, datagrams)).toEqual(['to the gateway']);
    await callPlugins('DEL', hostile);
    await runCommandOk('ip', ['netns', 'delete', hostile]);
  });

  it("DNS resolves Services for busybox's nslookup", async () => {
    const backend = await registryBackend({ serviceCidr: options.serviceCidr });
    await writeFile(join(dataDir, 'resolv.conf'), '');
    await startDns(
      withInformers({
        client: clientOf(backend),
        ip: options.dnsIp,
        port: 53,
        clusterDomain: 'cluster.local',
        upstreamFrom: join(dataDir, 'resolv.conf'),
        timers: systemTimers(),
        log: silentLog,
        signal,
      }),
    );
    const lookUp = () =>
      inside(namespaces[0], 'busybox', 'nslookup', 'myservice.default.svc.cluster.local', options.dnsIp);
    const before = await lookUp();
    expect(before.code, before.stdout).not.toBe(0);
    expect(before.stdout).toContain('NXDOMAIN');
    await backend.set(SERVICES, {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'myservice', namespace: 'default' },
      spec: { clusterIP: '10.214.77.20', ports: [{ port: 80 }] },
    } as KubeObject);
    const after = await lookUp();
    expect(after.code, after.stdout + after.stderr).toBe(0);
    expect(after.stdout).toContain('Address: 10.214.77.20');
  });

  it('ranges that are in use are refused, with the interface that uses them', async () => {
    const { bridge } = networkNames(options);
    const other = { ...options, instance: 'another', dataDir: join(dataDir, 'other') };
    await expect(setUpNetwork(other)).rejects.toThrow(
      `the Pod range 10.213.77.0/24 overlaps the route 10.213.77.0/24 of the interface ${bridge}: choose another with --pod-cidr`,
    );
    await expect(setUpNetwork({ ...other, podCidr: '10.214.0.0/16' })).rejects.toThrow('and the Service range');
    await expect(setUpNetwork({ ...other, podCidr: '10.213.78.0/24', serviceCidr: '10.213.0.0/16' })).rejects.toThrow(
      'overlap',
    );
  });

  it('tearing the network down leaves nothing behind', async () => {
    const { bridge, table } = networkNames(options);
    await callPlugins('DEL', namespaces[1] as string);
    // The first sandbox still has its interface and address, as after a crash.
    expect((await leasedAddresses(options)).size).toBe(1);
    await tearDownNetwork(options);
    await tearDownNetwork(options);
    const links = await runCommandOk('ip', ['-oneline', 'link', 'show']);
    expect(links).not.toContain(bridge);
    expect(await runCommandOk('nft', ['list', 'tables'])).not.toContain(table);
    expect(await runCommandOk('ip', ['netns', 'list'])).not.toContain(namespaces[0]);
    expect((await leasedAddresses(options)).size).toBe(0);
  });
});
