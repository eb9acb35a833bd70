/** The columns and cells of `kubectl get services`. Source: the Service printer of v1.33. */
import type { Service, ServicePort } from '../../../generated/types.ts';
import type { WriteContext } from '../../../kind.ts';
import { ageCell, ageColumn, column, labelsCell, nameColumn } from '../../../table.ts';

export const serviceColumns = [
  nameColumn,
  column('Type', 'How the Service can be reached.'),
  column('Cluster-IP', 'The address within the cluster.'),
  column('External-IP', 'The addresses at which the Service can be reached from outside the cluster.'),
  column('Port(s)', 'The ports. If a port is also open on every node, the node port follows after a colon.'),
  ageColumn,
  column('Selector', 'The labels of the Pods behind the Service.', { wide: true }),
];

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

export function serviceRow(service: Service, { now }: WriteContext): string[] {
  const { metadata, spec } = service;
  return [
    metadata.name,
    spec?.type ?? '',
    spec?.clusterIPs?.[0] || spec?.clusterIP || '<none>',
    externalCell(service),
    (spec?.ports ?? []).map(portCell).join(',') || '<none>',
    ageCell(metadata.creationTimestamp, now),
    labelsCell(spec?.selector),
  ];
}
