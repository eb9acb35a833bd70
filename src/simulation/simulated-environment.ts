/** The environment that a Pod in virtual time finds on its node. */
import type { PodEnvironment } from '../node/container/container-config.ts';

export const simulatedEnvironment: PodEnvironment = {
  nodeName: 'node',
  hostIps: ['192.0.2.1'],
  podIps: [],
  allocatable: {},
  services: [],
  configMap: () => undefined,
  secret: () => undefined,
  dns: { clusterDns: [], clusterDomain: 'cluster.local', host: { servers: [], searches: [], options: [] } },
  podDirectory: '/simulated/pod',
  logsRoot: '/simulated/logs',
  seccompRoot: '/simulated/seccomp',
  memoryCapacityBytes: 2 ** 30,
  volumePath: (name) => `/simulated/volumes/${name}`,
};
