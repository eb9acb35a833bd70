/**
 * After a reboot of the machine, the rules for Services and NetworkPolicies must apply to the first packets of Pods: to those that the
 * first init container sends, and to those of another machine, which tries to connect all the time.
 */
import { expect, test } from 'vitest';
import { pod, WAIT } from '../support/manifests.ts';
import type { Machine } from './machine.ts';
import { ALLOWED, KNOCKED, KNOCKS, OUTSIDE_IP, REFUSED } from './outside.ts';
import { writes } from './readme.ts';
import { apply, traced, traceOf, UNTIL_BOOTED, untilTraced } from './scripts.ts';

const CLUSTER_IP = '10.96.8.8';
const labels = { app: 'early' };
/** The trace files of a static Pod, and of a Pod of a Deployment. */
const NAMES = ['static', 'deployed'] as const;

/** The endpoint of the Service is the other machine. */
const service = [
  {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'outside' },
    spec: { clusterIP: CLUSTER_IP, ports: [{ port: 80 }] },
  },
  {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: 'outside', labels: { 'kubernetes.io/service-name': 'outside' } },
    addressType: 'IPv4',
    endpoints: [{ addresses: [OUTSIDE_IP] }],
    ports: [{ name: '', port: ALLOWED }],
  },
];

const policy = {
  apiVersion: 'networking.k8s.io/v1',
  kind: 'NetworkPolicy',
  metadata: { name: 'early' },
  spec: {
    podSelector: { matchLabels: labels },
    policyTypes: ['Ingress', 'Egress'],
    egress: [{ to: [{ ipBlock: { cidr: `${OUTSIDE_IP}/32` } }], ports: [{ port: ALLOWED }] }],
  },
};

const get = (seconds: number, address: string, port: number): string =>
  `timeout ${seconds} wget -q -O - http://${address}:${port}/`;

/**
 * The first container serves the port KNOCKED, and asks the other machine through the Service, and directly at the refused port. The static
 * Pod asks through the Service first, the other Pod at the refused port. Each Pod appends the answers, or `failed` if the Service gives
 * none, to its trace file. Then the app container appends `app` to the file.
 */
function earlyPod(name: (typeof NAMES)[number]): Record<string, unknown> {
  const hostPort = name === 'static' ? { hostPort: KNOCKED } : {};
  const ports = [{ containerPort: KNOCKED, ...hostPort }];
  const trace = `>>/trace/${name}`;
  const actions = [
    `${get(60, CLUSTER_IP, 80)} ${trace} || echo failed ${trace}`,
    `${get(5, OUTSIDE_IP, REFUSED)} ${trace} || true`,
  ];
  const script = `httpd -p ${KNOCKED} -h /bin\n${(name === 'static' ? actions : actions.reverse()).join('\n')}`;
  return pod(name, {
    labels,
    init: [{ name: 'first', script, ...traced.mount }],
    app: [{ name: 'app', script: `httpd -p ${KNOCKED} -h /bin; echo app ${trace}; ${WAIT}`, ports, ...traced.mount }],
    spec: { volumes: traced.volumes },
  });
}

const { spec } = earlyPod('deployed');
const deployment = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'early' },
  spec: { replicas: 1, selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
};

const UNTIL_EARLY = NAMES.map((name) => untilTraced(name, 'app')).join('\n');

export function bootTests(machine: () => Machine): void {
  test('a Service and a NetworkPolicy apply to a Deployment and a static Pod', async () => {
    await machine().ok(
      `${apply(...service, policy, deployment)}
      ${writes('/var/lib/lifepod/manifests/early.json', `${JSON.stringify(earlyPod('static'))}\n`)}
      ${UNTIL_EARLY}`,
      500,
    );
  });

  test.each(['orderly', 'crash'] as const)(
    'after a reboot (%s), the first container of a Pod reaches a cluster IP, and neither it nor others reach what a NetworkPolicy refuses',
    async (how) => {
      await machine().ok(`rm -f ${NAMES.map(traceOf).join(' ')}; sync`);
      await machine().reboot(how);
      await machine().ok(`${UNTIL_BOOTED}\n${UNTIL_EARLY}`, 500);
      for (const name of NAMES) expect(await machine().ok(`cat ${traceOf(name)}`)).toBe(`${ALLOWED}\napp\n`);
      expect(await machine().ok(`cat ${KNOCKS} 2>/dev/null || true`)).toBe('');
    },
  );

  test('without the NetworkPolicy, the same connections are allowed', async () => {
    await machine().ok(`kubectl delete networkpolicy early >/dev/null
      timeout 120 grep -qm 1 reached < <(exec tail -n +1 -F ${KNOCKS} 2>/dev/null)`);
    const deployed = `exec deployment/early -- ${get(20, OUTSIDE_IP, REFUSED)}`;
    expect(await machine().ok(`kubectl ${deployed} 2>/dev/null`)).toBe(`${REFUSED}\n`);
  });
}
