/** Validation of EndpointSlices. Source: pkg/apis/discovery/validation of v1.33 (behavior and wording). */
import {
  allErrors,
  duplicate,
  type FieldError,
  invalid,
  notSupported,
  required,
  tooMany,
} from '../../../../machinery/field-error.ts';
import { endpointIpErrors } from '../../../../machinery/ip-address.ts';
import {
  dns1123LabelErrors,
  dns1123SubdomainErrors,
  labelValueErrors,
  type NameErrors,
  qualifiedNameErrors,
} from '../../../../machinery/names.ts';
import type { DiscoveryV1EndpointPort, Endpoint, EndpointHints, EndpointSlice } from '../../../generated/types.ts';

const ADDRESS_TYPES = ['FQDN', 'IPv4', 'IPv6'];
const PROTOCOLS = ['SCTP', 'TCP', 'UDP'];
const MAX_ADDRESSES = 100;
const MAX_PORTS = 20_000;
const MAX_ENDPOINTS = 1000;
const MAX_ZONE_HINTS = 8;

const texts = (field: string, value: string | undefined, errorsOf: NameErrors): FieldError[] =>
  value === undefined ? [] : errorsOf(value).map((text) => invalid(field, value, text));

function validateDomain(address: string, field: string): FieldError[] {
  if (address === '') return [required(field)];
  const name = address.replace(/\.$/, '');
  const errors = dns1123SubdomainErrors(name);
  if (errors.length > 0) return [invalid(field, name, errors.join(','))];
  const labels = name.split('.');
  if (labels.length < 2) {
    return [invalid(field, name, 'should be a domain with at least two segments separated by dots')];
  }
  return labels.flatMap((label) => {
    const wrong = dns1123LabelErrors(label);
    return wrong.length === 0 ? [] : [invalid(field, label, wrong.join(','))];
  });
}

function validateAddress(address: string, type: string, field: string): FieldError[] {
  if (type === 'FQDN') return validateDomain(address, field);
  if (type !== 'IPv4' && type !== 'IPv6') return [];
  return texts(field, address, (ip) => endpointIpErrors(ip, type));
}

function validateHints({ forZones = [] }: EndpointHints, field: string): FieldError[] {
  if (forZones.length > MAX_ZONE_HINTS) return [tooMany(`${field}.forZones`, forZones.length, MAX_ZONE_HINTS)];
  const seen = new Set<string>();
  return forZones.flatMap(({ name = '' }, index) => {
    const path = `${field}.forZones[${index}].name`;
    const errors = seen.has(name) ? [duplicate(path, name)] : [];
    seen.add(name);
    return allErrors(errors, texts(path, name, labelValueErrors));
  });
}

function validateEndpoint({ addresses = [], ...endpoint }: Endpoint, type: string, field: string): FieldError[] {
  const errors: FieldError[] = [];
  const path = `${field}.addresses`;
  if (addresses.length === 0) errors.push(required(path, 'must contain at least 1 address'));
  else if (addresses.length > MAX_ADDRESSES) errors.push(tooMany(path, addresses.length, MAX_ADDRESSES));
  addresses.forEach((address, index) => {
    errors.push(...validateAddress(address, type, `${path}[${index}]`));
  });
  return allErrors(
    errors,
    texts(`${field}.nodeName`, endpoint.nodeName, dns1123SubdomainErrors),
    texts(`${field}.hostname`, endpoint.hostname, dns1123LabelErrors),
    endpoint.hints === undefined ? [] : validateHints(endpoint.hints, `${field}.hints`),
  );
}

function validateEndpoints({ addressType = '', endpoints = [] }: EndpointSlice): FieldError[] {
  if (endpoints.length > MAX_ENDPOINTS) return [tooMany('endpoints', endpoints.length, MAX_ENDPOINTS)];
  return endpoints.flatMap((endpoint, index) => validateEndpoint(endpoint, addressType, `endpoints[${index}]`));
}

function validatePort(port: DiscoveryV1EndpointPort, seen: Set<string>, field: string): FieldError[] {
  const { name = '', protocol, appProtocol } = port;
  const errors = name === '' ? [] : texts(`${field}.name`, name, dns1123LabelErrors);
  if (seen.has(name)) errors.push(duplicate(`${field}.name`, name));
  seen.add(name);
  if (protocol === undefined) errors.push(required(`${field}.protocol`));
  else if (!PROTOCOLS.includes(protocol)) errors.push(notSupported(`${field}.protocol`, protocol, PROTOCOLS));
  return allErrors(errors, texts(`${field}.appProtocol`, appProtocol, qualifiedNameErrors));
}

function validatePorts({ ports = [] }: EndpointSlice): FieldError[] {
  if (ports.length > MAX_PORTS) return [tooMany('ports', ports.length, MAX_PORTS)];
  const seen = new Set<string>();
  return ports.flatMap((port, index) => validatePort(port, seen, `ports[${index}]`));
}

function validateType({ addressType = '' }: EndpointSlice): FieldError[] {
  if (addressType === '') return [required('addressType')];
  return ADDRESS_TYPES.includes(addressType) ? [] : [notSupported('addressType', addressType, ADDRESS_TYPES)];
}

export const validateSlice = (slice: EndpointSlice): FieldError[] =>
  allErrors(validateType(slice), validateEndpoints(slice), validatePorts(slice));
