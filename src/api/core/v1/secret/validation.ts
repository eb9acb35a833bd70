/** Validation of Secrets. Source: pkg/apis/core/validation of v1.33 (behavior and wording). */
import { allErrors, type FieldError, invalid, required, tooLong } from '../../../../machinery/field-error.ts';
import { configMapKeyErrors } from '../../../../machinery/names.ts';
import type { Secret } from '../../../generated/types.ts';
import { DATA_LIMIT_BYTES } from '../immutable-data.ts';

const ACCOUNT_ANNOTATION = 'kubernetes.io/service-account.name';

function validateJsonKey(data: Record<string, string>, key: string): FieldError[] {
  const encoded = data[key];
  if (encoded === undefined) return [required(`data[${key}]`)];
  try {
    const content: unknown = JSON.parse(Buffer.from(encoded, 'base64').toString());
    if (typeof content === 'object' && !Array.isArray(content)) return [];
  } catch {
    // The parser's error is not reported, because its message may quote the secret.
  }
  return [invalid(`data[${key}]`, '<secret contents redacted>', 'must be a JSON object')];
}

function validateType({ metadata, type, data = {} }: Secret): FieldError[] {
  switch (type) {
    case 'kubernetes.io/service-account-token':
      return metadata.annotations?.[ACCOUNT_ANNOTATION]
        ? []
        : [required(`metadata.annotations[${ACCOUNT_ANNOTATION}]`)];
    case 'kubernetes.io/dockercfg':
      return validateJsonKey(data, '.dockercfg');
    case 'kubernetes.io/dockerconfigjson':
      return validateJsonKey(data, '.dockerconfigjson');
    case 'kubernetes.io/basic-auth':
      // These are upstream's paths: upstream does not replace the %s.
      return data['username'] === undefined && data['password'] === undefined
        ? [required('data[%s][username]'), required('data[%s][password]')]
        : [];
    case 'kubernetes.io/ssh-auth':
      return data['ssh-privatekey'] ? [] : [required('data[%s][ssh-privatekey]')];
    case 'kubernetes.io/tls':
      return ['tls.crt', 'tls.key'].filter((key) => data[key] === undefined).map((key) => required(`data[${key}]`));
    default:
      return [];
  }
}

export function validateContent(secret: Secret): FieldError[] {
  const errors: FieldError[] = [];
  let bytes = 0;
  for (const [key, value] of Object.entries(secret.data ?? {})) {
    errors.push(...configMapKeyErrors(key).map((text) => invalid(`data[${key}]`, key, text)));
    bytes += Buffer.byteLength(value, 'base64');
  }
  if (bytes > DATA_LIMIT_BYTES) errors.push(tooLong('data', DATA_LIMIT_BYTES));
  return allErrors(errors, validateType(secret));
}
