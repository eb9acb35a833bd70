/** Each Pod is a network namespace, as is the machine that connects them. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { NetworkPolicy, NetworkPolicySpec } from '../../src/api/generated/types.ts';
import { type NftTable, openTable } from '../../src/network/nftables/table.ts';
import { PoliciesSection } from '../../src/network/policies/policies-section.ts';
import {
  ask,
  connect,
  createNetworkNamespace,
  echoes,
  type NetworkNamespace,
  serve,
} from '../support/network-namespace.ts';

const { signal } = new AbortController();
const scope = new AsyncDisposableStack();
let machine: NetworkNamespace;
let pods: NetworkNamespace[];
let table: NftTable;
const section = new PoliciesSection();

beforeAll(async () => {
  machine = scope.use(await createNetworkNamespace());
  await machine.runOk('sysctl', ['-qw', 'net.ipv4.ip_forward=1', 'net.ipv6.conf.all.forwarding=1']);
  pods = [];
  for (const index of [1, 2]) {
    const pod = scope.use(await createNetworkNamespace());
    pods.push(pod);
    await machine.runOk('ip', [
      'link',
      'add',
      `pod${index}`,
      'type',
      'veth',
      'peer',
      'name',
      'eth0',
      'netns',
      pod.name,
    ]);
    const ends = [
      { end: machine, link: `pod${index}`, host: 1 },
      { end: pod, link: 'eth0', host: 2 },
    ];
    for (const { end, link, host } of ends) {
      await end.runOk('ip', ['address', 'add', `10.0.${index}.${host}/24`, 'dev', link]);
      await end.runOk('ip', ['address', 'add', `fd00:${index}::${host}/64`, 'dev', link, 'nodad']);
      await end.runOk('ip', ['link', 'set', link, 'up']);
    }
    await pod.runOk('ip', ['route', 'add', 'default', 'via', `10.0.${index}.1`]);
    await pod.runOk('ip', ['route', 'add', 'default', 'via', `fd00:${index}::1`]);
    section.setPod(`p${index}`, {
      namespace: 'n',
      labels: { app: `p${index}` },
      addresses: [`10.0.${index}.2`, `fd00:${index}::2`],
      ports: [{ name: 'web', protocol: 'TCP', port: 8080 }],
    });
  }
  section.setNamespace('n', { team: 't' });
  table = openTable({ name: 'lifepod-0', signal, namespace: machine.name });
  scope.use(await serve(pods[1]?.name ?? '', 8080, 'p2'));
  scope.use(await echoes(pods[1]?.name ?? '', 8081));
});
afterAll(() => scope.disposeAsync());

async function apply(spec: Partial<NetworkPolicySpec> | undefined): Promise<void> {
  const policy = {
    metadata: { name: 'p', namespace: 'n' },
    spec: { podSelector: { matchLabels: { app: 'p2' } }, ...spec },
  };
  section.setPolicy('p', spec === undefined ? undefined : (policy as NetworkPolicy));
  await table.set('policies', section.section());
}

const answers = async (protocol: 'tcp' | 'udp' = 'tcp'): Promise<boolean[]> =>
  Promise.all(
    ['10.0.2.2', 'fd00:2::2'].map(async (address) => (await ask(pods[0]?.name ?? '', address, 8080, protocol)) !== ''),
  );

it('traffic between Pods follows the policies, in both families', async () => {
  await apply(undefined);
  expect(await answers()).toEqual([true, true]);
  await apply({ policyTypes: ['Ingress'] });
  expect(await answers()).toEqual([false, false]);
  expect(await ask(machine.name, '10.0.2.2', 8080)).not.toBe('');
  await apply({ policyTypes: ['Ingress'], ingress: [{ ports: [{ protocol: 'TCP', port: 'web' }] }] });
  expect(await answers()).toEqual([true, true]);
  expect(await answers('udp')).toEqual([false, false]);
  await apply({ policyTypes: ['Ingress'], ingress: [{ from: [{ ipBlock: { cidr: 'fd00::/16' } }] }] });
  expect(await answers()).toEqual([false, true]);
  await apply({
    policyTypes: ['Egress'],
    podSelector: {},
    egress: [{ to: [{ namespaceSelector: { matchLabels: { team: 't' } } }] }],
  });
  expect(await answers('udp')).toEqual([true, true]);
}, 60_000);

it('a connection is cut when it is no longer allowed, and others continue', async () => {
  const from = [{ podSelector: { matchLabels: { app: 'p1' } } }];
  await apply({ policyTypes: ['Ingress'], ingress: [{ from }] });
  await using connection = connect(pods[0]?.name ?? '', '10.0.2.2', 8081);
  await using ofMachine = connect(machine.name, '10.0.2.2', 8081);
  expect(await connection.exchange('one')).toBe('one');
  expect(await ofMachine.exchange('one')).toBe('one');
  await apply({ policyTypes: ['Ingress'] });
  const answer = connection.exchange('two');
  let hasAnswered = false;
  void answer.then(() => {
    hasAnswered = true;
  });
  expect(await answers()).toEqual([false, false]);
  expect(await ofMachine.exchange('two')).toBe('two');
  expect(hasAnswered).toBe(false);
  // After the removal of the policy, the kernel sends the data again, and the connection continues.
  await apply(undefined);
  expect(await answer).toBe('two');
}, 60_000);
