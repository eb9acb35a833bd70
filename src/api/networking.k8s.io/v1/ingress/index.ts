/**
 * The Ingress: rules by which an Ingress controller forwards HTTP requests from outside to Services. lifepod has no such controller.
 * Source: pkg/registry/networking/ingress, pkg/apis/networking and pkg/printers of v1.33.
 */
import { kind } from '../../../declaration.ts';
import type { Ingress } from '../../../generated/types.ts';
import { countGeneration, startGeneration } from '../../../generation.ts';
import { ageColumn, column, nameColumn } from '../../../table.ts';
import { CLASS_ANNOTATION, validateIngress, validateIngressStatus } from './validation.ts';

const SHOWN_HOSTS = 3;

function hostsCell({ spec }: Ingress): string {
  const rules = spec?.rules ?? [];
  const hosts = rules.map(({ host }) => host ?? '').filter((host) => host !== '');
  if (hosts.length === 0) return '*';
  const shown = hosts.slice(0, SHOWN_HOSTS).join(',');
  // As in v1.33, the number before `more` counts the rules instead of the hosts.
  const hasMore = rules.length > rules.findIndex(({ host }) => host === hosts[SHOWN_HOSTS - 1]) + 1;
  return hosts.length >= SHOWN_HOSTS && hasMore ? `${shown} + ${rules.length - SHOWN_HOSTS} more...` : shown;
}

const addressCell = ({ status }: Ingress): string =>
  [...new Set((status?.loadBalancer?.ingress ?? []).map(({ ip, hostname }) => ip || hostname || ''))]
    .filter((address) => address !== '')
    .sort()
    .join(',');

export const ingressKind = kind<Ingress>('networking.k8s.io/v1', 'Ingress', {
  shortNames: ['ing'],
  defaults(ingress) {
    ingress.spec ??= {};
  },
  status: { initial: () => ({ loadBalancer: {} }), rules: [validateIngressStatus] },
  prepareForCreate: startGeneration,
  prepareForUpdate: (ingress, old) => countGeneration(ingress, old, [ingress.spec, old.spec]),
  rules: [validateIngress],
  warnings: ({ metadata, spec }, old) =>
    old === undefined && metadata.annotations?.[CLASS_ANNOTATION] !== undefined && spec?.ingressClassName === undefined
      ? [`annotation "${CLASS_ANNOTATION}" is deprecated, please use 'spec.ingressClassName' instead`]
      : [],
  columns: [
    nameColumn,
    column(
      'Class',
      'The IngressClass, whose controller implements the rules.',
      ({ spec }) => spec?.ingressClassName ?? '<none>',
    ),
    column('Hosts', 'The hosts of the rules; * stands for all hosts.', hostsCell),
    column('Address', 'The addresses at which a controller accepts requests.', addressCell),
    column('Ports', 'The ports of HTTP, and of HTTPS if there are certificates.', ({ spec }) =>
      (spec?.tls ?? []).length > 0 ? '80, 443' : '80',
    ),
    ageColumn,
  ],
});
