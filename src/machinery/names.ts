/**
 * Validates names, keys and addresses: one function per format, which returns the errors of a value in upstream's wording. Like upstream,
 * measures lengths in UTF-8 bytes, except in pathSegmentErrors(), which counts UTF-16 code units.
 * Source: k8s.io/apimachinery/pkg/util/validation and pkg/api/validation of v1.33 (behavior and wording).
 */
import { isIP } from 'node:net';

/** Returns the errors of a value; an empty list if the value is valid. */
export type NameErrors = (value: string) => string[];

const dns1123Label = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
const dns1123Subdomain = `${dns1123Label}(\\.${dns1123Label})*`;
const dns1035Label = '[a-z]([-a-z0-9]*[a-z0-9])?';
const qualifiedName = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]';
const labelValue = `(${qualifiedName})?`;
const configMapKey = '[-._a-zA-Z0-9]+';
const cIdentifier = '[A-Za-z_][A-Za-z0-9_]*';

const whole = (pattern: string): RegExp => new RegExp(`^(?:${pattern})$`);
const dns1123LabelRegexp = whole(dns1123Label);
const dns1123SubdomainRegexp = whole(dns1123Subdomain);
const dns1035LabelRegexp = whole(dns1035Label);
const qualifiedNameRegexp = whole(qualifiedName);
const labelValueRegexp = whole(labelValue);
const configMapKeyRegexp = whole(configMapKey);
const cIdentifierRegexp = whole(cIdentifier);

export const maxLengthText = (max: number): string => `must be no more than ${max} characters`;

export const inclusiveRangeText = (low: number, high: number): string =>
  `must be between ${low} and ${high}, inclusive`;

function regexText(message: string, pattern: string, ...examples: string[]): string {
  // The two spaces before 'or' are upstream's.
  const shown = examples.map((example) => `'${example}', `).join(' or ');
  return `${message} (e.g. ${shown}regex used for validation is '${pattern}')`;
}

/** `max`: in UTF-8 bytes. A UTF-16 code unit takes one to three bytes, so the bytes of most values need not be counted. */
const longerThan = (value: string, max: number): boolean =>
  value.length > max || (3 * value.length > max && Buffer.byteLength(value) > max);

const dns1123LabelText = regexText(
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character",
  dns1123Label,
  'my-name',
  '123-abc',
);

/** A DNS label of at most 63 characters, such as the name of a Namespace, a container or a volume. */
export function dns1123LabelErrors(value: string): string[] {
  const errors: string[] = [];
  if (longerThan(value, 63)) errors.push(maxLengthText(63));
  if (!dns1123LabelRegexp.test(value)) {
    errors.push(dns1123SubdomainRegexp.test(value) ? 'must not contain dots' : dns1123LabelText);
  }
  return errors;
}

const dns1123SubdomainText = regexText(
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
  dns1123Subdomain,
  'example.com',
);

/** A DNS subdomain of at most 253 characters, such as the name of an object of most kinds. */
export function dns1123SubdomainErrors(value: string): string[] {
  const errors: string[] = [];
  if (longerThan(value, 253)) errors.push(maxLengthText(253));
  if (!dns1123SubdomainRegexp.test(value)) errors.push(dns1123SubdomainText);
  return errors;
}

const wildcardSubdomain = `\\*\\.${dns1123Subdomain}`;
const wildcardSubdomainText = regexText(
  "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character",
  wildcardSubdomain,
  '*.example.com',
);
const wildcardSubdomainRegexp = whole(wildcardSubdomain);

/** A DNS subdomain after `*.`, such as the host of a rule of an Ingress. */
export function wildcardSubdomainErrors(value: string): string[] {
  const errors: string[] = [];
  if (longerThan(value, 253)) errors.push(maxLengthText(253));
  if (!wildcardSubdomainRegexp.test(value)) errors.push(wildcardSubdomainText);
  return errors;
}

const dns1035LabelText = regexText(
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character",
  dns1035Label,
  'my-name',
  'abc-123',
);

/** A DNS label of at most 63 characters that starts with a letter, such as the name of a Service. */
export function dns1035LabelErrors(value: string): string[] {
  const errors: string[] = [];
  if (longerThan(value, 63)) errors.push(maxLengthText(63));
  if (!dns1035LabelRegexp.test(value)) errors.push(dns1035LabelText);
  return errors;
}

const qualifiedNameText = regexText(
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
  qualifiedName,
  'MyName',
  'my.name',
  '123-abc',
);

/** Validates the generateName of an object of any kind: names are segments of URL paths. */
export const pathSegmentPrefixErrors: NameErrors = (value) =>
  ['/', '%'].filter((text) => value.includes(text)).map((text) => `may not contain '${text}'`);

/** A key of the store must have room for the resource, the namespace and the name. */
const MAX_PATH_SEGMENT_CHARACTERS = 900;

/**
 * Validates the name of an object of any kind as a segment of the object's URL path. lifepod's store requires short ASCII names without
 * NUL. Upstream has neither limit.
 */
export function pathSegmentErrors(value: string): string[] {
  if (value === '.' || value === '..') return [`may not be '${value}'`];
  const errors = pathSegmentPrefixErrors(value);
  if (value.length > MAX_PATH_SEGMENT_CHARACTERS) errors.push(maxLengthText(MAX_PATH_SEGMENT_CHARACTERS));
  if (!/^[\x01-\x7f]*$/.test(value)) errors.push('may contain only ASCII characters other than NUL');
  return errors;
}

/** A name with an optional DNS prefix, such as a label key, a lowercased annotation key or a finalizer. */
export function qualifiedNameErrors(value: string): string[] {
  const errors: string[] = [];
  const parts = value.split('/');
  if (parts.length > 2) {
    return [
      `a qualified name ${qualifiedNameText} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ];
  }
  const name = parts.at(-1) ?? '';
  if (parts.length === 2) {
    const prefix = parts[0] ?? '';
    if (prefix === '') errors.push('prefix part must be non-empty');
    else errors.push(...dns1123SubdomainErrors(prefix).map((text) => `prefix part ${text}`));
  }
  if (name === '') errors.push('name part must be non-empty');
  else if (longerThan(name, 63)) errors.push(`name part ${maxLengthText(63)}`);
  if (!qualifiedNameRegexp.test(name)) errors.push(`name part ${qualifiedNameText}`);
  return errors;
}

const labelValueText = regexText(
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
  labelValue,
  'MyValue',
  'my_value',
  '12345',
);

/** At most 63 characters; may be empty. */
export function labelValueErrors(value: string): string[] {
  const errors: string[] = [];
  if (longerThan(value, 63)) errors.push(maxLengthText(63));
  if (!labelValueRegexp.test(value)) errors.push(labelValueText);
  return errors;
}

/** Like v1.33, accepts all printable ASCII characters except '='. */
export function envVarNameErrors(value: string): string[] {
  if (value === '') return ['environment variable name must be non-empty'];
  if (/^[\x20-\x3c\x3e-\x7e]+$/.test(value)) return [];
  return ["a valid environment variable name must consist only of printable ASCII characters other than '='"];
}

const configMapKeyText = regexText(
  "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
  configMapKey,
  'key.name',
  'KEY_NAME',
  'key-name',
);

/** A key of a ConfigMap or a Secret, which must be a valid file name. */
export function configMapKeyErrors(value: string): string[] {
  const errors: string[] = [];
  if (longerThan(value, 253)) errors.push(maxLengthText(253));
  if (!configMapKeyRegexp.test(value)) errors.push(configMapKeyText);
  if (value === '.') errors.push("must not be '.'");
  else if (value === '..') errors.push("must not be '..'");
  else if (value.startsWith('..')) errors.push("must not start with '..'");
  return errors;
}

const cIdentifierText = regexText(
  "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_'",
  cIdentifier,
  'my_name',
  'MY_NAME',
  'MyName',
);

export const cIdentifierErrors: NameErrors = (value) => (cIdentifierRegexp.test(value) ? [] : [cIdentifierText]);

/** A service name of IANA (RFC 6335) of at most 15 characters, such as the name of a container's port. */
export function portNameErrors(value: string): string[] {
  const errors: string[] = [];
  if (longerThan(value, 15)) errors.push(maxLengthText(15));
  if (!/^[-a-z0-9]+$/.test(value)) {
    errors.push('must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)');
  }
  if (!/[a-z]/.test(value)) errors.push('must contain at least one letter (a-z)');
  if (value.includes('--')) errors.push('must not contain consecutive hyphens');
  if (value.startsWith('-') || value.endsWith('-')) errors.push('must not begin or end with a hyphen');
  return errors;
}

export const isPortNumber = (port: number | undefined): port is number =>
  port !== undefined && Number.isInteger(port) && port >= 1 && port <= 65535;

export const portNumberErrors = (port: number): string[] => (isPortNumber(port) ? [] : [inclusiveRangeText(1, 65535)]);

/** Returns 0 if the text is not an IP address. A zone (fe80::1%eth0) is not accepted. */
export const ipFamily = (value: string): 0 | 4 | 6 => (value.includes('%') ? 0 : (isIP(value) as 0 | 4 | 6));

/**
 * Rejects leading zeros (010.0.0.1), because programs interpret them differently. In Pods and Services, v1.33 accepts them unless its
 * feature gate StrictIPCIDRValidation is on.
 */
export const ipErrors: NameErrors = (value) =>
  ipFamily(value) === 0 ? ['must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'] : [];

/**
 * Validates generateName, the prefix of a generated name. `errors` validates the kind's names. A final dash is allowed, because a suffix
 * follows it.
 */
export function prefixErrors(errors: NameErrors, prefix: string): string[] {
  // Like upstream, replace the dash and the character before it with `a`, which is valid in every format.
  return errors(prefix.length > 1 && prefix.endsWith('-') ? `${prefix.slice(0, -2)}a` : prefix);
}
