/** Compares the whole network of a machine, a network namespace, before the network of Pods is set up and after its removal. */
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { CNI_CACHE } from '../../src/network/pod-network/attachments.ts';
import { networkNames } from '../../src/network/pod-network/names.ts';
import { attach } from '../support/cni.ts';
import { machineNetwork } from '../support/machine-network.ts';
import {
  connect,
  createNetworkNamespace,
  echoes,
  exchangeDatagrams,
  type NetworkNamespace,
  serve,
} from '../support/network-namespace.ts';

const NODE = '192.0.2.10';
const CLIENT = '192.0.2.20';
const PROGRAM = join(import.meta.dirname, '../support/network-of-namespace.ts');

/** Adds the default route that the machine would have if the client announced an IPv6 router. */
async function connectMachine(machine: NetworkNamespace, client: NetworkNamespace): Promise<void> {
  await machine.runOk('sysctl', ['-qw', 'net.ipv4.ip_forward=0', 'net.ipv6.conf.all.forwarding=0']);
  for (const namespace of [machine, client])
    await namespace.runOk('sysctl', ['-qw', 'net.ipv6.conf.default.accept_dad=0', 'net.ipv6.conf.all.accept_dad=0']);
  const inMachine = [
    `link add eth0 type veth peer name eth0 netns ${client.name}`,
    `address add ${NODE}/24 dev eth0`,
    'link set eth0 up',
    `route add default via ${CLIENT}`,
    '-6 route add default via fe80::1 dev eth0 proto ra',
  ];
  const inClient = [`address add ${CLIENT}/24 dev eth0`, 'link set eth0 up'];
  for (const command of inMachine) await machine.runOk('ip', command.split(' '));
  for (const command of inClient) await client.runOk('ip', command.split(' '));
  // Another program has rules of the type nat, so the kernel continues to translate connections.
  const chain = 'chain nat { type nat hook postrouting priority 100; ip saddr 198.51.100.0/24 masquerade; }';
  await machine.runOk('nft', ['-f', '-'], `table ip other { ${chain}; }`);
}

test('a machine whose Pod network was removed is as it was before, except that it forwards packets', async () => {
  await using machine = await createNetworkNamespace();
  await using client = await createNetworkNamespace();
  await using pod = await createNetworkNamespace();
  await connectMachine(machine, client);
  const dataDir = await mkdtemp(join(tmpdir(), 'lifepod-network-'));
  onTestFinished(() => rm(dataDir, { recursive: true }));
  const network = {
    dataDir,
    instance: dataDir,
    podCidr: '10.213.79.0/24,fd00:213:79::/64',
    serviceCidr: '10.214.79.0/24',
    serviceIps: ['10.214.79.10', '10.214.79.1'],
  };
  const change = (command: 'up' | 'down'): Promise<string> =>
    machine.runOk(process.execPath, [PROGRAM, command, JSON.stringify(network)]);

  const before = await machineNetwork(machine);
  await change('up');
  const hostPorts = (['tcp', 'udp'] as const).map((protocol) => ({ protocol, hostPort: 8080, containerPort: 80 }));
  const [ip = ''] = await attach(network, { name: pod.name, hostPorts, machine: machine.name });
  // containerd attaches the loopback interface of the sandbox as another network.
  const loopback = join(CNI_CACHE, `cni-loopback-${pod.name}-lo`);
  const result = { interfaces: [{ name: 'lo', sandbox: join(dataDir, 'netns/x') }] };
  await writeFile(loopback, JSON.stringify({ kind: 'cniCacheV1', containerId: pod.name, result }));
  await change('up');
  const changed = await machineNetwork(machine);
  for (const kind of [
    /^link \d+: veth/,
    /^link \d+: lp/,
    /^route .*10\.213\.79/,
    /^route .*fd00:213:79/,
    /^nft .*lifepod-/,
  ])
    expect(
      changed.some((line) => kind.test(line) && !before.includes(line)),
      String(kind),
    ).toBe(true);

  const server = await serve(pod.name, 80, 'the Pod');
  await using datagrams = exchangeDatagrams(client.name, NODE, 8080);
  expect(await datagrams.exchange('?')).toBe(`the Pod to ${CLIENT}`);
  await server[Symbol.asyncDispose]();
  const echo = await echoes(pod.name, 80);
  await using connection = connect(client.name, NODE, 8080);
  expect(await connection.exchange('hello')).toBe('hello');
  const tracked = (): Promise<string> => machine.runOk('conntrack', ['--dump']);
  expect(await tracked()).toMatch(new RegExp(`ESTABLISHED .*src=${ip} `));

  await change('down');
  await echo[Symbol.asyncDispose]();
  const after = await machineNetwork(machine);
  expect([before.filter((line) => !after.includes(line)), after.filter((line) => !before.includes(line))]).toEqual([
    [
      'net/ipv4/conf/all/accept_redirects 1',
      ...['all', 'default', 'eth0', 'lo'].map((link) => `net/ipv4/conf/${link}/forwarding 0`),
      'net/ipv4/ip_forward 0',
      'net/ipv6/conf/all/forwarding 0',
      'net/ipv6/conf/default/forwarding 0',
      'net/ipv6/conf/eth0/accept_ra 1',
      'net/ipv6/conf/eth0/forwarding 0',
      'net/ipv6/conf/lo/forwarding 0',
    ],
    [
      'net/ipv4/conf/all/accept_redirects 0',
      ...['all', 'default', 'eth0', 'lo'].map((link) => `net/ipv4/conf/${link}/forwarding 1`),
      'net/ipv4/ip_forward 1',
      'net/ipv6/conf/all/forwarding 1',
      'net/ipv6/conf/default/forwarding 1',
      'net/ipv6/conf/eth0/accept_ra 2',
      'net/ipv6/conf/eth0/forwarding 1',
      'net/ipv6/conf/lo/forwarding 1',
      // The kernel adds this route on routers.
      'route anycast fe80:: dev eth0 table local proto kernel metric 0 pref medium',
    ],
  ]);
  expect(await tracked()).not.toContain(ip);
  expect((await readdir(CNI_CACHE)).filter((name) => name.startsWith(networkNames(network).network))).toEqual([]);
  expect([existsSync(loopback), existsSync(join(dataDir, 'cni'))]).toEqual([false, false]);

  // The client has sent datagrams to the Pod all the time. They now reach the program that has the port.
  await using _program = await serve(machine.name, 8080, 'a program');
  expect(await datagrams.exchange('?')).toBe(`a program to ${CLIENT}`);
});
