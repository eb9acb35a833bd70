/**
 * The rules for CertificateSigningRequests, except those for the contents of `spec.request` and `status.certificate`: the API server parses
 * these (apiserver/admission/certificates). Source: pkg/apis/certificates/validation of v1.33 (behavior and wording).
 */
import {
  allErrors,
  duplicate,
  type FieldError,
  forbidden,
  invalid,
  notSupported,
  required,
  tooLong,
} from '../../../../machinery/field-error.ts';
import { type JsonValue, jsonEqual } from '../../../../machinery/json-value.ts';
import { dns1123LabelErrors, dns1123SubdomainErrors } from '../../../../machinery/names.ts';
import type { CertificateSigningRequest } from '../../../generated/types.ts';
import { conditionsOf, DECISIONS, type DecisionType } from './conditions.ts';

/** Upstream limits only the size of whole objects. */
const MAX_CERTIFICATE_BYTES = 64 * 1024;

const USAGES = [
  'any',
  'cert sign',
  'client auth',
  'code signing',
  'content commitment',
  'crl sign',
  'data encipherment',
  'decipher only',
  'digital signature',
  'email protection',
  'encipher only',
  'ipsec end system',
  'ipsec tunnel',
  'ipsec user',
  'key agreement',
  'key encipherment',
  'microsoft sgc',
  'netscape sgc',
  'ocsp signing',
  's/mime',
  'server auth',
  'signing',
  'timestamping',
];

const LEAST_SECONDS = 600;
const LEGACY_SIGNER = 'kubernetes.io/legacy-unknown';
const SIGNER_NAME = 'spec.signerName';
const CONDITIONS = 'status.conditions';

const MAX_DOMAIN = 253;
const MAX_PATH = 253 + 63 + 1;

function labelErrors(part: string, errorsOf: (label: string) => string[]): FieldError[] {
  const wrong = part.split('.').find((label) => errorsOf(label).length > 0);
  if (wrong === undefined) return [];
  return errorsOf(wrong).map((text) =>
    invalid(SIGNER_NAME, part, `validating label ${JSON.stringify(wrong)}: ${text}`),
  );
}

/** The name of a signer is a domain and a path, such as `example.com/clients`. */
function validateSignerName(name: string): FieldError[] {
  const parts = name.split('/');
  const [domain = '', path = ''] = parts;
  if (parts.length !== 2) {
    return [
      ...(name === '' ? [required(SIGNER_NAME)] : []),
      invalid(SIGNER_NAME, name, "must be a fully qualified domain and path of the form 'example.com/signer-name'"),
    ];
  }
  return allErrors(
    domain.length > MAX_DOMAIN ? [tooLong(SIGNER_NAME, MAX_DOMAIN)] : [],
    labelErrors(domain, dns1123LabelErrors),
    domain.includes('.')
      ? []
      : [invalid(SIGNER_NAME, domain, 'should be a domain with at least two segments separated by dots')],
    labelErrors(path, dns1123SubdomainErrors),
    name.length > MAX_DOMAIN + MAX_PATH + 1 ? [tooLong(SIGNER_NAME, MAX_DOMAIN + MAX_PATH + 1)] : [],
  );
}

function validateUsages(usages: readonly string[]): FieldError[] {
  const path = 'spec.usages';
  if (usages.length === 0) return [required(path)];
  return usages.flatMap((usage, index) => [
    ...(USAGES.includes(usage) ? [] : [notSupported(`${path}[${index}]`, usage, USAGES)]),
    ...(usages.indexOf(usage) < index ? [duplicate(`${path}[${index}]`, usage)] : []),
  ]);
}

export function validateSpec({ spec }: CertificateSigningRequest): FieldError[] {
  const { signerName = '', usages = [], expirationSeconds } = spec;
  return allErrors(
    validateUsages(usages),
    signerName === LEGACY_SIGNER
      ? [invalid(SIGNER_NAME, signerName, 'the legacy signerName is not allowed via this API version')]
      : validateSignerName(signerName),
    expirationSeconds !== undefined && expirationSeconds < LEAST_SECONDS
      ? [
          invalid(
            'spec.expirationSeconds',
            expirationSeconds,
            'may not specify a duration less than 600 seconds (10 minutes)',
          ),
        ]
      : [],
  );
}

const isDecision = (type: string): boolean => (DECISIONS as readonly string[]).includes(type);

function validateConditions({ status }: CertificateSigningRequest): FieldError[] {
  const seen = new Set<string>();
  return (status?.conditions ?? []).flatMap(({ type, status: value = '' }, index) => {
    const at = `${CONDITIONS}[${index}]`;
    const allowed = isDecision(type) ? ['True'] : ['False', 'True', 'Unknown'];
    const excluded = { Approved: 'Denied', Denied: 'Approved' }[type];
    const errors = allErrors(
      type === '' ? [required(`${at}.type`)] : [],
      value === ''
        ? [required(`${at}.status`)]
        : allowed.includes(value)
          ? []
          : [notSupported(`${at}.status`, value, allowed)],
      excluded !== undefined && seen.has(excluded)
        ? [invalid(`${at}.type`, type, 'Approved and Denied conditions are mutually exclusive')]
        : [],
      seen.has(type) ? [duplicate(`${at}.type`, type)] : [],
    );
    seen.add(type);
    return errors;
  });
}

function validateDecisions(
  request: CertificateSigningRequest,
  old: CertificateSigningRequest,
  fixed: readonly DecisionType[],
): FieldError[] {
  return DECISIONS.flatMap((type) => {
    const [now, before] = [conditionsOf(request, type), conditionsOf(old, type)];
    const refuse = (what: string): FieldError[] => [
      forbidden(CONDITIONS, `updates may not ${what} a condition of type ${JSON.stringify(type)}`),
    ];
    if (now.length < before.length) return refuse('remove');
    if (!fixed.includes(type)) return [];
    if (now.length > before.length) return refuse('add');
    return jsonEqual(now as unknown as JsonValue, before as unknown as JsonValue) ? [] : refuse('modify');
  });
}

const validateSize = ({ status }: CertificateSigningRequest): FieldError[] =>
  Buffer.byteLength(status?.certificate ?? '', 'base64') > MAX_CERTIFICATE_BYTES
    ? [tooLong('status.certificate', MAX_CERTIFICATE_BYTES)]
    : [];

export function validateStatus(request: CertificateSigningRequest, old?: CertificateSigningRequest): FieldError[] {
  if (old === undefined) return [];
  const { certificate: before = '' } = old.status ?? {};
  const isReplaced = before !== '' && (request.status?.certificate ?? '') !== before;
  return allErrors(
    validateConditions(request),
    validateSize(request),
    validateDecisions(request, old, ['Approved', 'Denied']),
    isReplaced ? [forbidden('status.certificate', 'updates may not modify existing certificate content')] : [],
  );
}

export const validateApproval = (request: CertificateSigningRequest, old: CertificateSigningRequest): FieldError[] =>
  allErrors(validateConditions(request), validateDecisions(request, old, []));
