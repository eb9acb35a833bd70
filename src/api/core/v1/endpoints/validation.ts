/** Validation of Endpoints. Source: pkg/apis/core/validation of v1.33 (behavior and wording). */
import { allErrors, type FieldError, invalid, notSupported, required } from '../../../../machinery/field-error.ts';
import { endpointIpErrors } from '../../../../machinery/ip-address.ts';
import {
  dns1123LabelErrors,
  dns1123SubdomainErrors,
  portNumberErrors,
  qualifiedNameErrors,
} from '../../../../machinery/names.ts';
import type { CoreV1EndpointPort, EndpointAddress, EndpointSubset, Endpoints } from '../../../generated/types.ts';
import { sameValue } from '../pod/compare.ts';

const PROTOCOLS = ['SCTP', 'TCP', 'UDP'];

const present = (field: string, value: string | undefined, errorsOf: (value: string) => string[]): FieldError[] =>
  value ? errorsOf(value).map((text) => invalid(field, value, text)) : [];

const validateAddress = ({ ip = '', hostname, nodeName }: EndpointAddress, field: string): FieldError[] =>
  allErrors(
    endpointIpErrors(ip).map((text) => invalid(`${field}.ip`, ip, text)),
    present(`${field}.hostname`, hostname, dns1123LabelErrors),
    nodeName === undefined
      ? []
      : dns1123SubdomainErrors(nodeName).map((text) => invalid(`${field}.nodeName`, nodeName, text)),
  );

function validatePort(port: CoreV1EndpointPort, several: boolean, field: string): FieldError[] {
  const errors = present(`${field}.name`, port.name, dns1123LabelErrors);
  if (several && !port.name) errors.push(required(`${field}.name`));
  const number = port.port ?? 0;
  errors.push(...portNumberErrors(number).map((text) => invalid(`${field}.port`, number, text)));
  if (!port.protocol) errors.push(required(`${field}.protocol`));
  else if (!PROTOCOLS.includes(port.protocol)) {
    errors.push(notSupported(`${field}.protocol`, port.protocol, PROTOCOLS));
  }
  const { appProtocol } = port;
  if (appProtocol === undefined) return errors;
  return allErrors(
    errors,
    qualifiedNameErrors(appProtocol).map((text) => invalid(`${field}.appProtocol`, appProtocol, text)),
  );
}

function validateSubset({ addresses = [], notReadyAddresses = [], ports = [] }: EndpointSubset, field: string) {
  const errors: FieldError[] = [];
  if (addresses.length + notReadyAddresses.length === 0) {
    errors.push(required(field, 'must specify `addresses` or `notReadyAddresses`'));
  }
  for (const [list, name] of [
    [addresses, 'addresses'],
    [notReadyAddresses, 'notReadyAddresses'],
  ] as const) {
    list.forEach((address, index) => {
      errors.push(...validateAddress(address, `${field}.${name}[${index}]`));
    });
  }
  ports.forEach((port, index) => {
    errors.push(...validatePort(port, ports.length > 1, `${field}.ports[${index}]`));
  });
  return errors;
}

/** Subsets that an update leaves unchanged are not validated: older versions accepted subsets that are now invalid. */
export function validateSubsets({ subsets = [] }: Endpoints, old?: Endpoints): FieldError[] {
  if (old !== undefined && sameValue(subsets, old.subsets)) return [];
  return subsets.flatMap((subset, index) => validateSubset(subset, `subsets[${index}]`));
}
