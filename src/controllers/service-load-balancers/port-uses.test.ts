import { expect, test } from 'vitest';
import type { Node, Pod, Service, ServiceSpec } from '../../api/generated/types.ts';
import { hasHostPorts, hiddenUses, otherUseIn, portUses } from './port-uses.ts';

const NODE: Node = {
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: 'n' },
  status: { addresses: [{ type: 'InternalIP', address: '192.0.2.1' }] },
};
const service = (name: string, spec: ServiceSpec): Service => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name, namespace: 'a' },
  spec,
});
const pod = (hostPort: number, hostIP?: string): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'db', namespace: 'a', labels: { app: 'db' } },
  spec: {
    nodeName: 'n',
    containers: [
      {
        name: 'c',
        ports: [{ containerPort: 80, hostPort, protocol: 'TCP', ...(hostIP === undefined ? {} : { hostIP }) }],
      },
    ],
  },
});
const nodePort = (name: string, port: number): Service =>
  service(name, { type: 'NodePort', ports: [{ port: 80, protocol: 'TCP', nodePort: port }] });
const balanced = (port: number, selector = {}): Service =>
  service('lb', { type: 'LoadBalancer', ports: [{ port, protocol: 'TCP' }], selector });
const messages = (services: Service[], pods: Pod[], balancer?: Service): string[] =>
  hiddenUses(
    portUses(services, pods, [NODE]),
    balancer === undefined ? [] : [{ service: balancer, ingress: [{ ip: '192.0.2.1' }] }],
  ).map(({ message }) => message);

const HIDDEN_POD =
  'connections to the host port TCP/30080 reach the node port of the Service a/web: use another port for one of them';

test('a node port hides a host port with its number, on whatever address the host port is', () => {
  expect(messages([nodePort('web', 30_080)], [pod(30_080)])).toEqual([HIDDEN_POD]);
  expect(messages([nodePort('web', 30_080)], [pod(30_080, '127.0.0.1')])).toEqual([HIDDEN_POD]);
  expect(messages([nodePort('web', 30_081)], [pod(30_080)])).toEqual([]);
});

test('a load balancer hides host ports on the addresses of the nodes, and node ports of other Services', () => {
  const by = 'reach the load balancer of the Service a/lb: use another port for one of them';
  expect(messages([], [pod(80)], balanced(80))).toEqual([`connections to the host port TCP/80 ${by}`]);
  expect(messages([], [pod(80, '192.0.2.1')], balanced(80))).toEqual([`connections to the host port TCP/80 ${by}`]);
  expect(messages([], [pod(80, '127.0.0.1')], balanced(80))).toEqual([]);
  expect(messages([nodePort('web', 30_080)], [], balanced(30_080))).toEqual([
    `connections to the node port TCP/30080 ${by}`,
  ]);
  expect(messages([nodePort('lb', 30_080)], [], balanced(30_080))).toEqual([]);
});

test('a load balancer waits for host ports on the addresses of the nodes, and for node ports of other Services', () => {
  const other = (services: Service[], pods: Pod[], port: number): string | undefined =>
    otherUseIn(portUses(services, pods, [NODE]))(balanced(port, { app: 'web' }), `TCP/${port}`);
  expect(other([], [pod(80)], 80)).toBe('the host port of the Pod a/db');
  expect(other([], [pod(80, '127.0.0.1')], 80)).toBeUndefined();
  expect(other([], [pod(81)], 80)).toBeUndefined();
  expect(other([nodePort('web', 30_080)], [], 30_080)).toBe('the node port of the Service a/web');
  expect(other([nodePort('lb', 30_080)], [], 30_080)).toBeUndefined();
});

test('a host port of a Pod that the Service selects is not hidden', () => {
  expect(messages([], [pod(80)], balanced(80, { app: 'db' }))).toEqual([]);
});

test('only a Pod that is bound and has not ended has host ports', () => {
  expect(hasHostPorts(pod(80))).toBe(true);
  expect(hasHostPorts({ ...pod(80), status: { phase: 'Succeeded' } })).toBe(false);
  expect(hasHostPorts({ ...pod(80), spec: { ...pod(80).spec, nodeName: '' } } as Pod)).toBe(false);
});
