/**
 * The Endpoints: the addresses behind the Service of the same name. Deprecated in favor of EndpointSlices (discovery.k8s.io/v1).
 * Source: pkg/registry/core/endpoint, pkg/apis/core and pkg/printers of v1.33.
 */
import { addressWarnings } from '../../../../machinery/ip.ts';
import { kind } from '../../../declaration.ts';
import type { Endpoints } from '../../../generated/types.ts';
import { ageColumn, column, nameColumn } from '../../../table.ts';
import { ENDPOINTS_CONTROLLER, ENDPOINTS_MANAGED_BY } from './labels.ts';
import { repackSubsets } from './repack-subsets.ts';
import { validateSubsets } from './validation.ts';

const SHOWN = 3;

/** Returns the first ready addresses with their ports, and the number of the others. */
function endpointsCell({ subsets = [] }: Endpoints): string {
  if (subsets.length === 0) return '<none>';
  const shown: string[] = [];
  let count = 0;
  for (const { addresses = [], ports = [] } of subsets) {
    count += addresses.length * Math.max(ports.length, 1);
    const suffixes = ports.length === 0 ? [undefined] : ports.slice(0, SHOWN).map(({ port }) => port);
    for (const port of suffixes) {
      for (const { ip } of addresses.slice(0, SHOWN - shown.length)) {
        shown.push(port === undefined ? ip : `${ip.includes(':') ? `[${ip}]` : ip}:${port}`);
      }
    }
  }
  return count > SHOWN ? `${shown.join(',')} + ${count - SHOWN} more...` : shown.join(',');
}

/** Endpoints that the controller writes are not checked, because the controller writes addresses in canonical form. */
function warningsOf({ metadata, subsets = [] }: Endpoints): string[] {
  if (metadata.labels?.[ENDPOINTS_MANAGED_BY] === ENDPOINTS_CONTROLLER) return [];
  return subsets.flatMap((subset, index) =>
    (['addresses', 'notReadyAddresses'] as const).flatMap((list) =>
      (subset[list] ?? []).flatMap(({ ip }, at) => addressWarnings(`subsets[${index}].${list}[${at}].ip`, ip)),
    ),
  );
}

export const endpointsKind = kind<Endpoints>('v1', 'Endpoints', {
  plural: 'endpoints',
  shortNames: ['ep'],
  deprecation: 'v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice',
  defaults({ subsets = [] }) {
    for (const { ports = [] } of subsets) for (const port of ports) port.protocol ||= 'TCP';
  },
  rules: [validateSubsets],
  warnings: warningsOf,
  canonicalize(endpoints) {
    const subsets = repackSubsets(endpoints.subsets ?? []);
    if (subsets.length === 0) delete endpoints.subsets;
    else endpoints.subsets = subsets;
  },
  columns: [
    nameColumn,
    column('Endpoints', 'The addresses and ports of the endpoints that are ready.', endpointsCell),
    ageColumn,
  ],
});
