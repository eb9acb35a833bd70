/** Validation of Ingresses. Source: pkg/apis/networking/validation of v1.33 (behavior and wording). */
import { allErrors, type FieldError, invalid, notSupported, required } from '../../../../machinery/field-error.ts';
import { addressErrors } from '../../../../machinery/ip.ts';
import {
  dns1035LabelErrors,
  dns1123SubdomainErrors,
  ipFamily,
  type NameErrors,
  pathSegmentErrors,
  portNameErrors,
  portNumberErrors,
  wildcardSubdomainErrors,
} from '../../../../machinery/names.ts';
import type { HTTPIngressPath, Ingress, IngressBackend, IngressRule, IngressTLS } from '../../../generated/types.ts';

/** The annotation that named the class of an Ingress before the field spec.ingressClassName existed. */
export const CLASS_ANNOTATION = 'kubernetes.io/ingress.class';

const PATH_TYPES = ['Exact', 'ImplementationSpecific', 'Prefix'];
const BAD_SEQUENCES = ['//', '/./', '/../', '%2f', '%2F'];
const BAD_SUFFIXES = ['/..', '/.'];
const NOT_AN_ADDRESS = 'must be a DNS name, not an IP address';

const check = (field: string, value: string, errorsOf: NameErrors): FieldError[] =>
  errorsOf(value).map((text) => invalid(field, value, text));

const named = (field: string, value: string | undefined, errorsOf: NameErrors): FieldError[] =>
  value ? check(field, value, errorsOf) : [required(field)];

function validateReference(reference: NonNullable<IngressBackend['resource']>, field: string): FieldError[] {
  const { apiGroup, kind, name } = reference;
  return allErrors(
    apiGroup === undefined ? [] : check(`${field}.apiGroup`, apiGroup, dns1123SubdomainErrors),
    named(`${field}.kind`, kind, pathSegmentErrors),
    named(`${field}.name`, name, pathSegmentErrors),
  );
}

function validateService({ name, port }: NonNullable<IngressBackend['service']>, field: string): FieldError[] {
  const errors = named(`${field}.service.name`, name, dns1035LabelErrors);
  const { name: portName = '', number = 0 } = port ?? {};
  if (portName !== '' && number !== 0)
    return [...errors, invalid(field, '', 'cannot set both port name & port number')];
  if (portName !== '') return [...errors, ...check(`${field}.service.port.name`, portName, portNameErrors)];
  if (number === 0) return [...errors, required(field, 'port name or number is required')];
  return [...errors, ...portNumberErrors(number).map((text) => invalid(`${field}.service.port.number`, number, text))];
}

function validateBackend({ resource, service }: IngressBackend, field: string): FieldError[] {
  if (resource !== undefined && service !== undefined) {
    return [invalid(field, '', 'cannot set both resource and service backends')];
  }
  if (resource !== undefined) return validateReference(resource, `${field}.resource`);
  if (service !== undefined) return validateService(service, field);
  return [invalid(field, '', 'resource or service backend is required')];
}

function validatePath({ pathType, path = '', backend }: HTTPIngressPath, field: string): FieldError[] {
  if (pathType === undefined) return [required(`${field}.pathType`, 'pathType must be specified')];
  const errors: FieldError[] = [];
  const bad = (text: string): void => void errors.push(invalid(`${field}.path`, path, text));
  if (!PATH_TYPES.includes(pathType)) errors.push(notSupported(`${field}.pathType`, pathType, PATH_TYPES));
  else if (pathType === 'ImplementationSpecific') {
    if (path !== '' && !path.startsWith('/')) bad('must be an absolute path');
  } else {
    if (!path.startsWith('/')) bad('must be an absolute path');
    for (const sequence of BAD_SEQUENCES) if (path.includes(sequence)) bad(`must not contain '${sequence}'`);
    for (const suffix of BAD_SUFFIXES) if (path.endsWith(suffix)) bad(`cannot end with '${suffix}'`);
  }
  return allErrors(errors, validateBackend(backend ?? {}, `${field}.backend`));
}

function validateHttp({ http }: IngressRule, field: string): FieldError[] {
  if (http === undefined) return [];
  const paths = http.paths ?? [];
  if (paths.length === 0) return [required(`${field}.http.paths`)];
  return paths.flatMap((path, index) => validatePath(path, `${field}.http.paths[${index}]`));
}

const hostErrors: NameErrors = (host) =>
  host.includes('*') ? wildcardSubdomainErrors(host) : dns1123SubdomainErrors(host);

function validateHost(host: string, field: string): FieldError[] {
  if (host === '') return [];
  return allErrors(ipFamily(host) === 0 ? [] : [invalid(field, host, NOT_AN_ADDRESS)], check(field, host, hostErrors));
}

const validateTls = ({ hosts = [], secretName = '' }: IngressTLS, field: string, anySecret: boolean): FieldError[] =>
  allErrors(
    hosts.flatMap((host, index) => check(`${field}.hosts[${index}]`, host, hostErrors)),
    secretName === '' || anySecret ? [] : check(`${field}.secretName`, secretName, dns1123SubdomainErrors),
  );

const isWild = ({ host = '' }: IngressRule): boolean => host.includes('*');

/**
 * Returns which faults an update may keep, because the old Ingress has them. `secrets`: invalid secret names; `wildRules`: invalid rules
 * for wildcard hosts.
 */
const toleratedBy = (old: Ingress | undefined) => ({
  secrets: (old?.spec?.tls ?? []).some(
    ({ secretName = '' }) => secretName !== '' && dns1123SubdomainErrors(secretName).length > 0,
  ),
  wildRules: (old?.spec?.rules ?? []).some((rule) => isWild(rule) && validateHttp(rule, '').length > 0),
});

function validateClass({ metadata, spec }: Ingress, old: Ingress | undefined): FieldError[] {
  const name = spec?.ingressClassName;
  if (name === undefined) return [];
  const annotation = metadata.annotations?.[CLASS_ANNOTATION];
  const differs = old === undefined && annotation !== undefined && annotation !== name;
  return allErrors(
    check('spec.ingressClassName', name, dns1123SubdomainErrors),
    differs
      ? [
          invalid(
            `annotations.${CLASS_ANNOTATION}`,
            annotation,
            'must match `ingressClassName` when both are specified',
          ),
        ]
      : [],
  );
}

export function validateIngress(ingress: Ingress, old?: Ingress): FieldError[] {
  const { rules = [], defaultBackend, tls = [] } = ingress.spec ?? {};
  const tolerated = toleratedBy(old);
  return allErrors(
    rules.length === 0 && defaultBackend === undefined
      ? [invalid('spec', rules.length === 0 ? null : rules, 'either `defaultBackend` or `rules` must be specified')]
      : [],
    defaultBackend === undefined ? [] : validateBackend(defaultBackend, 'spec.defaultBackend'),
    ...rules.map((rule, index) => {
      const field = `spec.rules[${index}]`;
      const isTolerated = tolerated.wildRules && isWild(rule);
      return allErrors(validateHost(rule.host ?? '', `${field}.host`), isTolerated ? [] : validateHttp(rule, field));
    }),
    ...tls.map((each, index) => validateTls(each, `spec.tls[${index}]`, tolerated.secrets)),
    validateClass(ingress, old),
  );
}

/** An update may keep addresses that the old status has. */
export function validateIngressStatus({ status }: Ingress, old?: Ingress): FieldError[] {
  const known = (old?.status?.loadBalancer?.ingress ?? []).map(({ ip }) => ip);
  return (status?.loadBalancer?.ingress ?? []).flatMap(({ ip = '', hostname = '' }, index) => {
    const field = `status.loadBalancer.ingress[${index}]`;
    return allErrors(
      ip === '' || known.includes(ip) ? [] : check(`${field}.ip`, ip, addressErrors),
      hostname === '' ? [] : check(`${field}.hostname`, hostname, dns1123SubdomainErrors),
      hostname === '' || ipFamily(hostname) === 0 ? [] : [invalid(`${field}.hostname`, hostname, NOT_AN_ADDRESS)],
    );
  });
}
