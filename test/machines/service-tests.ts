/** Tests Services and NetworkPolicies between two Pods of one node, whether or not the kernel passes bridged packets to the rules. */
import { expect, test } from 'vitest';
import type { Pod } from '../../src/api/generated/types.ts';
import { pod, WAIT } from '../support/manifests.ts';
import type { Machine } from './machine.ts';
import { MACHINE_IP, OUTSIDE_IP } from './outside.ts';
import { apply, untilReady } from './scripts.ts';

const PROTOCOLS = ['TCP', 'UDP', 'SCTP'] as const;
type Protocol = (typeof PROTOCOLS)[number];

const [PORT, CLUSTER_IP, NODE_PORT, HOST_PORT] = [8080, '10.96.7.7', 30_080, 8088];
/** The first address of the default range of Pods: the node, as Pods see it. */
const GATEWAY = '10.222.0.1';
/** An address of the machine besides MACHINE_IP. An SCTP client that is not bound to an address sends all addresses of its machine. */
const OTHER_IP = '10.0.2.15';

/** With these folders of the machine, a container of the image busybox can run socat. */
const FOLDERS = { '/machine': '/usr/bin', '/lib': '/usr/lib', '/lib64': '/usr/lib64' };
const mounts = Object.entries(FOLDERS).map(([mountPath, path], index) => ({ name: `m${index}`, mountPath, path }));

/** Answers each connection or datagram with `web to` and the client's address. The backlog is for clients that connect at the same time. */
const SERVE = ['TCP4-LISTEN', 'UDP4-RECVFROM', 'SCTP4-LISTEN']
  .map((kind) => {
    const backlog = kind.endsWith('LISTEN') ? ',backlog=64' : '';
    return `/machine/socat ${kind}:${PORT},fork,reuseaddr${backlog} SYSTEM:'echo web to $SOCAT_PEERADDR' &`;
  })
  .join('\n');
/** With this command, the container reaches its own SCTP server. */
const ASK_ITSELF = `/machine/socat -u SCTP4:127.0.0.1:${PORT} - | grep web`;

const web = pod('web', {
  labels: { app: 'web' },
  app: [
    {
      name: 'app',
      script: `${SERVE}\n${WAIT}`,
      ports: PROTOCOLS.map((protocol) => ({ containerPort: PORT, hostPort: HOST_PORT, protocol })),
      volumeMounts: mounts.map(({ name, mountPath }) => ({ name, mountPath, readOnly: true })),
      readinessProbe: { exec: { command: ['sh', '-c', ASK_ITSELF] }, timeoutSeconds: 60, periodSeconds: 2 },
    },
  ],
  spec: { volumes: mounts.map(({ name, path }) => ({ name, hostPath: { path } })) },
});

const service = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'web' },
  spec: {
    type: 'NodePort',
    selector: { app: 'web' },
    clusterIP: CLUSTER_IP,
    ports: PROTOCOLS.map((protocol) => ({
      name: protocol.toLowerCase(),
      protocol,
      port: 80,
      targetPort: PORT,
      nodePort: NODE_PORT,
    })),
  },
};

const policy = {
  apiVersion: 'networking.k8s.io/v1',
  kind: 'NetworkPolicy',
  metadata: { name: 'web' },
  spec: {
    podSelector: { matchLabels: { app: 'web' } },
    ingress: [
      {
        from: [{ podSelector: { matchLabels: { app: 'client' } } }],
        ports: [{ protocol: 'SCTP', port: PORT }],
      },
    ],
  },
};

/** Where a client runs: in a Pod, in the network of the other machine, or on the machine, bound to an address. */
type Place = 'web' | 'client' | 'outside' | typeof GATEWAY | typeof OTHER_IP | '127.0.0.1';

interface Question {
  from: Place;
  address: string;
  port: number;
}

const QUESTIONS: readonly Question[] = [
  { from: 'client', address: CLUSTER_IP, port: 80 },
  { from: 'web', address: CLUSTER_IP, port: 80 },
  { from: OTHER_IP, address: CLUSTER_IP, port: 80 },
  { from: 'client', address: MACHINE_IP, port: NODE_PORT },
  { from: '127.0.0.1', address: '127.0.0.1', port: NODE_PORT },
  { from: 'outside', address: MACHINE_IP, port: NODE_PORT },
  { from: 'outside', address: MACHINE_IP, port: HOST_PORT },
];

/**
 * ask() asks a server of SERVE for some seconds by a protocol at an address and a port, with socket options of the client, and prints the
 * answer if there is one. The further arguments are a command that runs the client, such as nsenter(1). A UDP client asks again every two
 * seconds, because datagrams may be lost.
 */
const ASK = `ask() {
  local seconds=$1 protocol=$2 to=$3:$4 options=$5
  shift 5
  if [ $protocol = UDP ]; then
    head -n 1 < <(while echo; do sleep 2; done | "$@" timeout $seconds socat -t $seconds - UDP4:$to$options)
  else
    "$@" timeout $seconds socat -u \${protocol}4:$to$options - || true
  fi 2>/dev/null
}
# Prints the network namespace with the address.
namespace_with() {
  local file
  for file in /var/lib/lifepod/run/containerd/*/netns/*; do
    if nsenter --net=$file ip -4 -o address show dev eth0 | grep -qF "inet $1/"; then echo $file; fi
  done
}`;

interface Addresses {
  web: string;
  client: string;
}

async function addresses(machine: Machine): Promise<Addresses> {
  const { items } = JSON.parse(await machine.ok('kubectl get pods -o json')) as { items: Pod[] };
  const of = (name: string): string => items.find(({ metadata }) => metadata.name === name)?.status?.podIP ?? '';
  return { web: of('web'), client: of('client') };
}

/** In seconds: how long a client waits for an answer that it should get, and for one that it should not get. */
const [PATIENCE, IMPATIENCE] = [120, 15];

/**
 * Resolves with the answers by question and protocol, such as `client 10.96.7.7:80 SCTP`. Clients that should get no answer do not wait as
 * long as the others.
 */
async function answers(
  machine: Machine,
  pods: Addresses,
  isAllowed: (question: Question, protocol: Protocol) => boolean,
): Promise<Record<string, string>> {
  const asked = QUESTIONS.flatMap((question) => PROTOCOLS.map((protocol) => ({ ...question, protocol })));
  const lines = asked.map((question, index) => {
    const { from, address, port, protocol } = question;
    const seconds = isAllowed(question, protocol) ? PATIENCE : IMPATIENCE;
    const isNamespace = from === 'web' || from === 'client' || from === 'outside';
    const client = isNamespace ? `'' nsenter --net=$${from}` : `,bind=${from}`;
    return `echo "${index} $(ask ${seconds} ${protocol} ${address} ${port} ${client})" &`;
  });
  const output = await machine.ok(`${ASK}
    web=$(namespace_with ${pods.web}) client=$(namespace_with ${pods.client}) outside=/run/netns/outside
    ${lines.join('\n')}
    wait`);
  const texts = new Map([...output.matchAll(/^(\d+) (.*)$/gm)].map(([, index, text]) => [index, text]));
  return Object.fromEntries(asked.map((each, index) => [nameOf(each, each.protocol), texts.get(String(index)) ?? '']));
}

const nameOf = ({ from, address, port }: Question, protocol: Protocol): string =>
  `${from} ${address}:${port} ${protocol}`;

const all = <T>(answer: (question: Question, protocol: Protocol) => T): Record<string, T> =>
  Object.fromEntries(
    QUESTIONS.flatMap((question) =>
      PROTOCOLS.map((protocol) => [nameOf(question, protocol), answer(question, protocol)]),
    ),
  );

const SETTINGS = ['0', '1'];
const setBridgeNetfilter = (setting: string): string => `sysctl -qw net.bridge.bridge-nf-call-iptables=${setting}`;

export function serviceTests(machine: () => Machine): void {
  test('a container serves TCP, UDP and SCTP', async () => {
    await machine().ok(`${apply(service, web, pod('client', { labels: { app: 'client' } }))}
      ${untilReady('web')}
      ${untilReady('client')}`);
  });

  test('the engine restores its rules after nft flush ruleset', async () => {
    await machine().ok(`before=$(nft list ruleset | wc -l)
      nft flush ruleset
      timeout 120 bash -c "until [ \\$(nft list ruleset | wc -l) -ge $before ]; do sleep 0.5; done"`);
  });

  test.each(SETTINGS)(
    'Pods, the machine and others reach cluster IP, node port and host port by TCP, UDP and SCTP with bridge-nf-call-iptables %s',
    async (setting) => {
      await machine().ok(setBridgeNetfilter(setting));
      const pods = await addresses(machine());
      const seen = ({ from, port }: Question): string => {
        if (port === HOST_PORT) return OUTSIDE_IP;
        return from === 'client' && port === 80 ? pods.client : GATEWAY;
      };
      expect(await answers(machine(), pods, () => true)).toEqual(all((question) => `web to ${seen(question)}`));
    },
  );

  test('a NetworkPolicy allows SCTP from one Pod only, with bridge-nf-call-iptables 0 and 1', async () => {
    await machine().ok(`${apply(policy)}
      timeout 120 bash -c 'until nft list ruleset | grep -q "chain policies/ingress-of"; do sleep 0.5; done'`);
    const pods = await addresses(machine());
    const isAllowed = ({ from }: Question, protocol: Protocol): boolean =>
      from === 'client' ? protocol === 'SCTP' : from !== 'outside';
    for (const setting of SETTINGS) {
      await machine().ok(setBridgeNetfilter(setting));
      const given = Object.entries(await answers(machine(), pods, isAllowed)).map(([name, text]) => [
        name,
        text !== '',
      ]);
      expect(Object.fromEntries(given)).toEqual(all(isAllowed));
    }
    await machine().ok('kubectl delete networkpolicy,service,pod web >/dev/null');
  });
}
