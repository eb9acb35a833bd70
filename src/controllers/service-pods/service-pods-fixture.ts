import type { Container, Node, Pod, PodSpec, Service, ServiceSpec } from '../../api/generated/types.ts';
import type { ObjectMeta } from '../../machinery/meta.ts';

export const CREATED = '2026-01-31T12:00:00Z';
export const READY_AT = '2026-01-31T12:00:05Z';

export const service = (spec: Partial<ServiceSpec> = {}, metadata: Partial<ObjectMeta> = {}): Service => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'web', namespace: 'a', uid: 'web', creationTimestamp: CREATED, ...metadata },
  spec: {
    selector: { app: 'web' },
    clusterIP: '10.96.0.10',
    ipFamilies: ['IPv4'],
    ports: [{ port: 80, targetPort: 'http', protocol: 'TCP' }],
    ...spec,
  },
});

export interface PodState {
  ips?: string[];
  isReady?: boolean;
  terminates?: boolean;
  phase?: string;
  labels?: Record<string, string>;
  /** Default: n1; '' stands for no node. */
  node?: string;
  /** The number of the port `http`; default: 8080. */
  port?: number;
  spec?: Partial<PodSpec>;
}

const container = (port: number): Container => ({
  name: 'app',
  image: 'x',
  ports: [{ name: 'http', containerPort: port, protocol: 'TCP' }],
});

export function pod(name: string, state: PodState = {}): Pod {
  const { ips = ['10.0.0.1'], isReady = true, terminates = false, phase = 'Running' } = state;
  const { labels = { app: 'web' }, node = 'n1', port = 8080, spec = {} } = state;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace: 'a',
      uid: name,
      labels,
      ...(terminates ? { deletionTimestamp: READY_AT } : {}),
    },
    spec: { containers: [container(port)], ...(node === '' ? {} : { nodeName: node }), ...spec },
    status: {
      phase,
      ...(ips.length === 0 ? {} : { podIP: ips[0], podIPs: ips.map((ip) => ({ ip })) }),
      conditions: [{ type: 'Ready', status: isReady ? 'True' : 'False', lastTransitionTime: READY_AT }],
    },
  };
}

export const node = (name: string, zone?: string): Node => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name, labels: zone === undefined ? {} : { 'topology.kubernetes.io/zone': zone } },
});

export const ipOf = (number: number): string => `10.0.${Math.floor(number / 250)}.${1 + (number % 250)}`;

export const podsNumbered = (from: number, to: number, state: PodState = {}): Pod[] =>
  Array.from({ length: to - from }, (_, at) => pod(`p${from + at}`, { ips: [ipOf(from + at)], ...state }));
