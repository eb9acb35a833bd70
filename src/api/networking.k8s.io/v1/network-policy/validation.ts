/** Validation of NetworkPolicies. Source: pkg/apis/networking/validation of v1.33 (behavior and wording). */
import {
  allErrors,
  type FieldError,
  forbidden,
  invalid,
  notSupported,
  required,
} from '../../../../machinery/field-error.ts';
import { type IpRange, parseIpRange, rangeContainsRange, rangeErrors } from '../../../../machinery/ip.ts';
import { labelSelectorErrors } from '../../../../machinery/labels.ts';
import { portNameErrors, portNumberErrors } from '../../../../machinery/names.ts';
import type {
  IPBlock,
  NetworkPolicy,
  NetworkPolicyPeer,
  NetworkPolicyPort,
  NetworkPolicySpec,
} from '../../../generated/types.ts';

const PROTOCOLS = ['TCP', 'UDP', 'SCTP'];
const POLICY_TYPES = ['Ingress', 'Egress'];

export const peersOf = ({
  ingress = [],
  egress = [],
}: Partial<NetworkPolicySpec> = {}): [string, NetworkPolicyPeer][] => [
  ...ingress.flatMap(({ from = [] }, rule) => withPaths(`spec.ingress[${rule}].from`, from)),
  ...egress.flatMap(({ to = [] }, rule) => withPaths(`spec.egress[${rule}].to`, to)),
];

const withPaths = <T>(path: string, items: readonly T[]): [string, T][] =>
  items.map((item, index) => [`${path}[${index}]`, item]);

function validatePort({ protocol, port, endPort }: NetworkPolicyPort, field: string): FieldError[] {
  const errors: FieldError[] = [];
  const bad = (name: 'port' | 'endPort', value: number | string | undefined, texts: readonly string[]): void => {
    errors.push(...texts.map((text) => invalid(`${field}.${name}`, value, text)));
  };
  if (protocol !== undefined && !PROTOCOLS.includes(protocol)) {
    errors.push(notSupported(`${field}.protocol`, protocol, PROTOCOLS));
  }
  if (typeof port === 'number') {
    bad('port', port, portNumberErrors(port));
    if (endPort === undefined) return errors;
    if (endPort < port) bad('endPort', endPort, ['must be greater than or equal to `port`']);
    bad('endPort', endPort, portNumberErrors(endPort));
    return errors;
  }
  const isNamed = port !== undefined;
  const missing = isNamed ? 'when `port` is non-numeric' : 'when `port` is not specified';
  if (endPort !== undefined) bad('endPort', endPort, [`may not be specified ${missing}`]);
  if (isNamed) bad('port', port, portNameErrors(port));
  return errors;
}

function validateBlock({ cidr, except = [] }: IPBlock, field: string, known: ReadonlySet<string>): FieldError[] {
  if (!cidr) return [required(`${field}.cidr`)];
  const errorsOf = (path: string, text: string): FieldError[] =>
    known.has(text) ? [] : rangeErrors(text).map((error) => invalid(path, text, error));
  const errors = errorsOf(`${field}.cidr`, cidr);
  const outer = parseIpRange(cidr);
  if (outer === undefined) return errors;
  except.forEach((text, index) => {
    const path = `${field}.except[${index}]`;
    errors.push(...errorsOf(path, text));
    const inner = parseIpRange(text);
    if (inner !== undefined && !isStrictlyIn(outer, inner)) {
      errors.push(invalid(path, text, 'must be a strict subset of `cidr`'));
    }
  });
  return errors;
}

const isStrictlyIn = (outer: IpRange, inner: IpRange): boolean =>
  inner.prefixLength > outer.prefixLength && rangeContainsRange(outer, inner);

function validatePeer(peer: NetworkPolicyPeer, field: string, known: ReadonlySet<string>): FieldError[] {
  const { podSelector, namespaceSelector, ipBlock } = peer;
  const errors = allErrors(
    labelSelectorErrors(podSelector, `${field}.podSelector`),
    labelSelectorErrors(namespaceSelector, `${field}.namespaceSelector`),
    ipBlock === undefined ? [] : validateBlock(ipBlock, `${field}.ipBlock`, known),
  );
  const peers = [podSelector, namespaceSelector, ipBlock].filter((each) => each !== undefined).length;
  if (peers === 0) errors.push(required(field, 'must specify a peer'));
  else if (peers > 1 && ipBlock !== undefined) {
    errors.push(forbidden(field, 'may not specify both ipBlock and another peer'));
  }
  return errors;
}

function validateTypes(types: readonly string[]): FieldError[] {
  const field = 'spec.policyTypes';
  if (types.length > POLICY_TYPES.length) return [invalid(field, types, 'may not specify more than two policyTypes')];
  return types.flatMap((type, index) =>
    POLICY_TYPES.includes(type) ? [] : [notSupported(`${field}[${index}]`, type, POLICY_TYPES)],
  );
}

/** An update may keep invalid ranges that occur anywhere in the old policy. */
export function validateNetworkPolicy(
  { spec = { podSelector: {} } }: NetworkPolicy,
  old?: NetworkPolicy,
): FieldError[] {
  const known = new Set(
    peersOf(old?.spec).flatMap(([, { ipBlock }]) =>
      ipBlock === undefined ? [] : [ipBlock.cidr, ...(ipBlock.except ?? [])],
    ),
  );
  const rules = (name: 'ingress' | 'egress'): FieldError[] =>
    (spec[name] ?? []).flatMap((rule, index) => {
      const field = `spec.${name}[${index}]`;
      const [path, peers = []] = 'from' in rule ? ['from', rule.from] : ['to', 'to' in rule ? rule.to : []];
      return allErrors(
        ...withPaths(`${field}.ports`, rule.ports ?? []).map(([at, port]) => validatePort(port, at)),
        ...withPaths(`${field}.${path}`, peers).map(([at, peer]) => validatePeer(peer, at, known)),
      );
    });
  return allErrors(
    labelSelectorErrors(spec.podSelector, 'spec.podSelector'),
    rules('ingress'),
    rules('egress'),
    validateTypes(spec.policyTypes ?? []),
  );
}
