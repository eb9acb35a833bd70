/** Validation of a Service's ports. Source: pkg/apis/core/validation of v1.33 (behavior and wording). */
import {
  allErrors,
  duplicate,
  type FieldError,
  forbidden,
  invalid,
  notSupported,
  required,
} from '../../../../machinery/field-error.ts';
import {
  dns1123LabelErrors,
  portNameErrors,
  portNumberErrors,
  qualifiedNameErrors,
} from '../../../../machinery/names.ts';
import type { ServicePort, ServiceSpec } from '../../../generated/types.ts';

const PROTOCOLS = ['SCTP', 'TCP', 'UDP'];

export const isHeadless = ({ clusterIP, clusterIPs }: ServiceSpec): boolean =>
  clusterIPs?.length === 1 ? clusterIPs[0] === 'None' : clusterIP === 'None';

function validateNumbers(port: ServicePort, field: string): FieldError[] {
  const errors = portNumberErrors(port.port).map((text) => invalid(`${field}.port`, port.port, text));
  if (!port.protocol) errors.push(required(`${field}.protocol`));
  else if (!PROTOCOLS.includes(port.protocol)) {
    errors.push(notSupported(`${field}.protocol`, port.protocol, PROTOCOLS));
  }
  const { targetPort } = port;
  const targetErrors =
    typeof targetPort === 'string' ? portNameErrors(targetPort) : portNumberErrors(targetPort ?? port.port);
  errors.push(...targetErrors.map((text) => invalid(`${field}.targetPort`, targetPort, text)));
  if (port.appProtocol !== undefined) {
    const texts = qualifiedNameErrors(port.appProtocol);
    errors.push(...texts.map((text) => invalid(`${field}.appProtocol`, port.appProtocol, text)));
  }
  return errors;
}

function validateName(name: string, several: boolean, seen: Set<string>, field: string): FieldError[] {
  if (name === '') return several ? [required(field)] : [];
  const errors = dns1123LabelErrors(name).map((text) => invalid(field, name, text));
  if (seen.has(name)) errors.push(duplicate(field, name));
  seen.add(name);
  return errors;
}

export function validatePorts(spec: ServiceSpec): FieldError[] {
  const ports = spec.ports ?? [];
  const names = new Set<string>();
  const nodePorts = new Set<string>();
  const numbers = new Set<string>();
  return ports.flatMap((port, index) => {
    const field = `spec.ports[${index}]`;
    const errors = allErrors(
      validateName(port.name ?? '', ports.length > 1, names, `${field}.name`),
      validateNumbers(port, field),
    );
    if (port.nodePort) {
      if (spec.type === 'ClusterIP') {
        errors.push(forbidden(`${field}.nodePort`, "may not be used when `type` is 'ClusterIP'"));
      }
      const pair = `${port.protocol}:${port.nodePort}`;
      if (nodePorts.has(pair)) errors.push(duplicate(`${field}.nodePort`, port.nodePort));
      nodePorts.add(pair);
    }
    const pair = `${port.protocol}:${port.port}`;
    if (numbers.has(pair)) errors.push(duplicate(field, { protocol: port.protocol, port: port.port }));
    numbers.add(pair);
    return errors;
  });
}
