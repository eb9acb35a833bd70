/** The columns and cells of `kubectl get services`. Source: the Service printer of v1.33. */
import type { Service, ServicePort } from '../../../generated/types.ts';
import { ageColumn, type CellColumn, column, labelsCell, nameColumn } from '../../../table.ts';

function externalCell({ spec, status }: Service): string {
  const external = spec?.externalIPs ?? [];
  switch (spec?.type) {
    case 'LoadBalancer': {
      const balanced = (status?.loadBalancer?.ingress ?? []).map(({ ip, hostname }) => ip || hostname || '');
      const all = [...new Set(balanced)].filter((address) => address !== '').sort();
      return [...all, ...external].join(',') || '<pending>';
    }
    case 'ExternalName':
      return spec.externalName ?? '';
    default:
      return external.join(',') || '<none>';
  }
}

const portCell = ({ port, nodePort, protocol = 'TCP' }: ServicePort): string =>
  nodePort ? `${port}:${nodePort}/${protocol}` : `${port}/${protocol}`;

export const serviceColumns: readonly CellColumn<Service>[] = [
  nameColumn,
  column('Type', 'How the Service can be reached.', ({ spec }) => spec?.type ?? ''),
  column(
    'Cluster-IP',
    'The address within the cluster.',
    ({ spec }) => spec?.clusterIPs?.[0] || spec?.clusterIP || '<none>',
  ),
  column('External-IP', 'The addresses at which the Service can be reached from outside the cluster.', externalCell),
  column(
    'Port(s)',
    'The ports. If a port is also open on every node, the node port follows after a colon.',
    ({ spec }) => (spec?.ports ?? []).map(portCell).join(',') || '<none>',
  ),
  ageColumn,
  column('Selector', 'The labels of the Pods behind the Service.', ({ spec }) => labelsCell(spec?.selector), {
    wide: true,
  }),
];
