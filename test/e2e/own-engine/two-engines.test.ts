import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import type { Node, Service } from '../../../src/api/generated/types.ts';
import { networkNames } from '../../../src/network/pod-network/names.ts';
import { runCommand } from '../../../src/platform/processes.ts';
import { freeNetwork, type Lifepod, launch, scratchFolder, startLifepod } from '../../support/lifepod.ts';
import { pod, WAIT } from '../../support/manifests.ts';

const SAME_NODE_PORT = 30_047;
const SAME_HOST_PORT = 28_088;
/** If the engines chose their node ports, both could choose the same. */
const OWN_PORTS = { one: { nodePort: 30_045, hostPort: 28_089 }, two: { nodePort: 30_046, hostPort: 28_090 } };
type Name = keyof typeof OWN_PORTS;
const SERVE = `
  serve() { nc -ll -p $1 -e sh -c 'while read line; do echo "$HOSTNAME"; done'; }
  serve 8081 & serve 8080`;

let first: Lifepod;
let second: Lifepod;
beforeAll(async () => {
  first = await startLifepod();
  second = await startLifepod();
});
afterAll(async () => {
  await second?.stop();
  await first?.stop();
});

interface Address {
  ip: string;
  port: number;
}

const ask = ({ ip, port }: Address): string => `echo hello | timeout 10 nc -w 5 ${ip} ${port}`;
const fromMachine = async (address: Address): Promise<string> =>
  (await runCommand('busybox', ['sh', '-c', ask(address)])).stdout.trim();
const fromPodOf = async (lifepod: Lifepod, address: Address): Promise<string> =>
  (await lifepod.exec('client', '--', 'sh', '-c', ask(address))).stdout.trim();

async function deploy(lifepod: Lifepod, name: Name): Promise<void> {
  const { nodePort, hostPort } = OWN_PORTS[name];
  const ports = [
    { containerPort: 8080, hostPort },
    { containerPort: 8081, hostPort: SAME_HOST_PORT },
  ];
  await lifepod.apply(pod('client', { app: [{ name: 'app', script: WAIT }] }));
  const readinessProbe = { tcpSocket: { port: 8080 }, periodSeconds: 1 };
  const spec = { terminationGracePeriodSeconds: 1 };
  const app = [{ name: 'app', script: SERVE, ports, readinessProbe }];
  await lifepod.apply(pod(name, { app, labels: { app: name }, spec }));
  await lifepod.wait('--for=condition=Ready', 'pod/client', `pod/${name}`);
  await lifepod.kubectlOk('create', 'service', 'nodeport', name, '--tcp=80:8080', `--node-port=${nodePort}`);
}

/** The addresses on loopback are the last ones. */
async function addressesOf(lifepod: Lifepod, name: Name): Promise<Address[]> {
  const { spec } = await lifepod.get<Service>('service', name);
  const [node] = (await lifepod.get<{ items: Node[] }>('nodes')).items;
  const nodeIp = node?.status?.addresses?.find(({ type }) => type === 'InternalIP')?.address as string;
  const { nodePort, hostPort } = OWN_PORTS[name];
  return [
    { ip: spec?.clusterIP as string, port: 80 },
    { ip: nodeIp, port: nodePort },
    { ip: nodeIp, port: hostPort },
    { ip: '127.0.0.1', port: nodePort },
    { ip: '127.0.0.1', port: hostPort },
  ];
}

test('Pods of both engines and the machine reach the Services, node ports and host ports of both engines', async () => {
  await Promise.all([deploy(first, 'one'), deploy(second, 'two')]);
  for (const [lifepod, name] of [
    [first, 'one'],
    [second, 'two'],
  ] as const) {
    const addresses = await addressesOf(lifepod, name);
    for (const address of addresses)
      await expect.poll(() => fromMachine(address), { timeout: 30_000, message: JSON.stringify(address) }).toBe(name);
    for (const address of addresses.slice(0, 3)) {
      expect(await fromPodOf(first, address), JSON.stringify(address)).toBe(name);
      expect(await fromPodOf(second, address), JSON.stringify(address)).toBe(name);
    }
  }
});

test('an engine whose Pod range overlaps the Service range of another engine is refused, because its Pods would be unreachable', async () => {
  const at = first.options.indexOf('--service-cidr') + 1;
  // The second half of the Service range contains no cluster IP that the machine has, so no route shows that this half is in use.
  const half = (first.options[at] ?? '').replace('.0/24', '.128/25');
  const scratch = scratchFolder();
  onTestFinished(() => scratch.remove());
  const options = ['--data-dir', scratch.path, ...(await freeNetwork()), '--pod-cidr', half];
  const { code, stderr } = await launch(['up', '--detach', ...options]);
  expect(code).toBe(1);
  expect(stderr).toContain(
    `the Pod range ${half} overlaps the Service range ${first.options[at]} of another engine of lifepod on this machine, with the ` +
      `nftables table ${tableOf(first)}: choose another with --pod-cidr, such as --pod-cidr 10.`,
  );
});

test('an engine with the port or the Pod range of another engine is refused, with the options to give', async () => {
  const scratch = scratchFolder();
  onTestFinished(() => scratch.remove());
  const given = (option: string): string => first.options[first.options.indexOf(option) + 1] ?? '';
  const upWith = async (...options: string[]): Promise<string> =>
    (await launch(['up', '--detach', '--data-dir', scratch.path, ...options])).stderr;
  const { port } = new URL(await first.kubectlOk('config', 'view', '-o', 'jsonpath={.clusters[0].cluster.server}'));
  expect(await upWith('--port', port)).toMatch(
    new RegExp(
      `^lifepod: port ${port} on 127\\.0\\.0\\.1 is in use by another engine of lifepod: start this one with options of its own, such ` +
        'as --port 0 --pod-cidr 10\\.\\S+ --service-cidr 10\\.\\S+\n$',
    ),
  );
  const podCidr = given('--pod-cidr');
  expect(await upWith(...(await freeNetwork()), '--pod-cidr', podCidr)).toContain(
    ` of another engine of lifepod: choose another with --pod-cidr, such as --pod-cidr 10.`,
  );
});

test('the copy of a data folder is refused beside the engine of the original, and down says that nothing of it runs', async () => {
  const [copy, backups] = [scratchFolder(), scratchFolder()];
  onTestFinished(async () => {
    await copy.remove();
    await backups.remove();
  });
  const file = join(backups.path, 'backup.tar');
  await first.cliOk('backup', file);
  const onCopy = (...args: string[]) => launch([...args, '--data-dir', copy.path]);
  expect(await onCopy('restore', file)).toMatchObject({ code: 0 });
  const { stderr: refusal } = await onCopy('up', '--detach');
  expect(refusal).toContain(
    ` of another engine of lifepod, and the ranges that ${copy.path} was created with cannot change: end that engine with '`,
  );
  expect(refusal).toContain(`lifepod down --data-dir ${first.dataDir}', or choose another --data-dir`);
  const { code, stderr } = await onCopy('down');
  expect(stderr).toContain(`the engine of ${copy.path} cannot start to end its Pods: `);
  expect([code, stderr]).toEqual([1, expect.stringContaining('nothing of it runs')]);
  expect(stderr).toContain(`lifepod down --data-dir ${first.dataDir}'`);
});

const tableOf = ({ dataDir }: Lifepod): string => networkNames({ dataDir, instance: dataDir }).table;

test('the engine that was started last gets a port that both have, until it is down, and the other one keeps working', async () => {
  const same = [SAME_NODE_PORT, SAME_HOST_PORT].map((port) => ({ ip: '127.0.0.1', port }));
  const answers = (): Promise<string[]> => Promise.all(same.map(fromMachine));
  for (const [lifepod, name] of [
    [first, 'one'],
    [second, 'two'],
  ] as const) {
    await lifepod.kubectlOk('create', 'service', 'nodeport', 'same', '--tcp=80:8080', `--node-port=${SAME_NODE_PORT}`);
    await lifepod.kubectlOk('set', 'selector', 'service/same', `app=${name}`);
    await expect.poll(answers, { timeout: 30_000 }).toEqual([name, 'two']);
  }
  await expect
    .poll(() => second.kubectlOk('describe', 'service', 'same'), { timeout: 30_000 })
    .toMatch(
      new RegExp(
        `PortConflict .* nftables table ${tableOf(first)}, also has the node port TCP/${SAME_NODE_PORT}: only one of them`,
      ),
    );
  for (const [lifepod, other] of [
    [first, second],
    [second, first],
  ] as const) {
    const shared = new RegExp(`table ${tableOf(other)}, also has the port (\\S+):`, 'g');
    const shown = [...(await lifepod.cli('status')).stdout.matchAll(shared)].map(([, port]) => port);
    expect(shown).toEqual([`TCP/${SAME_HOST_PORT}`, `TCP/${SAME_NODE_PORT}`]);
  }
  await second.cliOk('down');
  await expect.poll(answers, { timeout: 30_000 }).toEqual(['one', 'one']);
  for (const address of await addressesOf(first, 'one')) expect(await fromMachine(address)).toBe('one');
  expect(await fromPodOf(first, (await addressesOf(first, 'one'))[0] as Address)).toBe('one');
});
