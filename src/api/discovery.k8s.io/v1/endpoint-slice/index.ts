/**
 * The EndpointSlice: a part of the endpoints of a Service, of one address family and with the same ports.
 * Source: pkg/registry/discovery/endpointslice, pkg/apis/discovery and pkg/printers of v1.33.
 */
import { addressWarnings } from '../../../../machinery/ip.ts';
import { kind } from '../../../declaration.ts';
import type { EndpointSlice } from '../../../generated/types.ts';
import { countGeneration, startGeneration } from '../../../generation.ts';
import { immutable } from '../../../rules.ts';
import { ageColumn, column, nameColumn } from '../../../table.ts';
import { MANAGED_BY_LABEL, MIRRORING_CONTROLLER, SLICE_CONTROLLER } from './labels.ts';
import { validateSlice } from './validation.ts';

/** The maximum number of values in a cell. */
const SHOWN = 3;

const cell = (values: readonly (string | number)[]): string => {
  const shown = values.slice(0, SHOWN).join(',');
  return values.length > SHOWN ? `${shown} + ${values.length - SHOWN} more...` : shown || '<unset>';
};

/** v1.33 does not store these fields: its feature gate for node hints is off, and v1 does not accept the topology of v1beta1. */
function dropFields({ endpoints }: EndpointSlice): void {
  for (const endpoint of endpoints) {
    delete endpoint.deprecatedTopology;
    delete endpoint.hints?.forNodes;
  }
}

/** Slices that the controllers write are not checked, because the controllers write addresses in canonical form. */
function warningsOf({ metadata, addressType, endpoints }: EndpointSlice, old?: EndpointSlice): string[] {
  const deprecated =
    old === undefined && addressType === 'FQDN' ? ['spec.addressType: FQDN endpoints are deprecated'] : [];
  const manager = metadata.labels?.[MANAGED_BY_LABEL];
  if (manager === SLICE_CONTROLLER || manager === MIRRORING_CONTROLLER) return deprecated;
  const unusual = endpoints.flatMap(({ addresses }, index) =>
    addresses.flatMap((address, at) => addressWarnings(`endpoints[${index}].addresses[${at}]`, address)),
  );
  return [...deprecated, ...unusual];
}

/** Changes of these parts increment the generation. */
const asked = ({ addressType, endpoints, ports, metadata: { labels } }: EndpointSlice) => ({
  addressType,
  endpoints,
  ports,
  labels,
});

export const endpointSliceKind = kind<EndpointSlice>('discovery.k8s.io/v1', 'EndpointSlice', {
  defaults(slice) {
    slice.endpoints ??= [];
    for (const port of slice.ports ?? []) {
      port.name ??= '';
      port.protocol ??= 'TCP';
    }
  },
  prepareForCreate(slice) {
    startGeneration(slice);
    dropFields(slice);
  },
  prepareForUpdate(slice, old) {
    dropFields(slice);
    countGeneration(slice, old, [asked(slice), asked(old)]);
  },
  rules: [validateSlice, immutable('addressType')],
  warnings: warningsOf,
  columns: [
    nameColumn,
    column('AddressType', 'The type of the addresses: IPv4, IPv6 or FQDN.', ({ addressType }) => addressType),
    column('Ports', 'The ports of the endpoints.', ({ ports = [] }) =>
      cell(ports.map(({ port, name }) => port ?? name ?? '*')),
    ),
    column('Endpoints', 'The addresses of the endpoints.', ({ endpoints }) =>
      cell(endpoints.flatMap(({ addresses }) => addresses)),
    ),
    ageColumn,
  ],
});
