/**
 * The NetworkPolicy: which traffic the Pods that it selects may receive and send.
 * Source: pkg/registry/networking/networkpolicy, pkg/apis/networking and pkg/printers of v1.33.
 */
import { rangeWarnings } from '../../../../machinery/ip.ts';
import { kind } from '../../../declaration.ts';
import type { NetworkPolicy, NetworkPolicySpec } from '../../../generated/types.ts';
import { countGeneration, startGeneration } from '../../../generation.ts';
import { ageColumn, column, nameColumn, selectorCell } from '../../../table.ts';
import { peersOf, validateNetworkPolicy } from './validation.ts';

/** A policy without policyTypes applies to ingress and, if it has egress rules, also to egress. */
function defaultPolicy(policy: NetworkPolicy): void {
  policy.spec ??= { podSelector: {} };
  const { spec } = policy;
  for (const { ports = [] } of [...(spec.ingress ?? []), ...(spec.egress ?? [])])
    for (const port of ports) port.protocol ??= 'TCP';
  if ((spec.policyTypes ?? []).length === 0)
    spec.policyTypes = (spec.egress ?? []).length > 0 ? ['Ingress', 'Egress'] : ['Ingress'];
}

const warningsOf = (spec: NetworkPolicySpec | undefined): string[] =>
  peersOf(spec).flatMap(([field, { ipBlock }]) =>
    ipBlock === undefined
      ? []
      : [
          ...rangeWarnings(`${field}.ipBlock.cidr`, ipBlock.cidr),
          ...(ipBlock.except ?? []).flatMap((range, index) =>
            rangeWarnings(`${field}.ipBlock.except[${index}]`, range),
          ),
        ],
  );

export const networkPolicyKind = kind<NetworkPolicy>('networking.k8s.io/v1', 'NetworkPolicy', {
  shortNames: ['netpol'],
  defaults: defaultPolicy,
  prepareForCreate: startGeneration,
  prepareForUpdate: (policy, old) => countGeneration(policy, old, [policy.spec, old.spec]),
  rules: [validateNetworkPolicy],
  warnings: ({ spec }) => warningsOf(spec),
  columns: [
    nameColumn,
    column('Pod-Selector', 'The labels of the Pods whose traffic the policy limits.', ({ spec }) =>
      selectorCell(spec?.podSelector),
    ),
    ageColumn,
  ],
});
