/** Validation of IngressClasses. Source: pkg/apis/networking/validation of v1.33 (behavior and wording). */
import {
  allErrors,
  type FieldError,
  forbidden,
  invalid,
  notSupported,
  required,
  tooLong,
} from '../../../../machinery/field-error.ts';
import {
  dns1123LabelErrors,
  dns1123SubdomainErrors,
  type NameErrors,
  pathSegmentErrors,
} from '../../../../machinery/names.ts';
import type { IngressClass, IngressClassParametersReference } from '../../../generated/types.ts';
import { immutable } from '../../../rules.ts';

const MAX_CONTROLLER_BYTES = 250;
const SCOPES = ['Cluster', 'Namespace'];

const named = (field: string, value: string | undefined, errorsOf: NameErrors): FieldError[] =>
  value ? errorsOf(value).map((text) => invalid(field, value, text)) : [required(field)];

const PATH = "[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+";
const pathRegexp = new RegExp(`^${PATH}$`);

/** The controller is a domain with a path, such as `example.com/controller`. The errors show the part that is wrong. */
function validateController(controller: string): FieldError[] {
  const field = 'spec.controller';
  if (controller === '') return [required(field)];
  const errors = Buffer.byteLength(controller) > MAX_CONTROLLER_BYTES ? [tooLong(field, MAX_CONTROLLER_BYTES)] : [];
  const slash = controller.indexOf('/');
  const [host, path] = [controller.slice(0, slash), controller.slice(slash + 1)];
  if (slash <= 0 || path === '') {
    return [...errors, invalid(field, controller, 'must be a domain-prefixed path (such as "acme.io/foo")')];
  }
  errors.push(...dns1123SubdomainErrors(host).map((text) => invalid(field, host, text)));
  if (!pathRegexp.test(path)) {
    errors.push(invalid(field, path, `Invalid path (regex used for validation is '${PATH}')`));
  }
  return errors;
}

function validateScope({ scope, namespace }: IngressClassParametersReference, field: string): FieldError[] {
  if (scope === undefined) return [required(`${field}.scope`)];
  if (!SCOPES.includes(scope)) return [notSupported(`${field}.scope`, scope, SCOPES)];
  if (scope === 'Cluster') {
    return namespace === undefined ? [] : [forbidden(`${field}.namespace`, "`parameters.scope` is set to 'Cluster'")];
  }
  if (namespace === undefined) return [required(`${field}.namespace`, "`parameters.scope` is set to 'Namespace'")];
  return dns1123LabelErrors(namespace).map((text) => invalid(`${field}.namespace`, namespace, text));
}

function validateParameters(parameters: IngressClassParametersReference, field: string): FieldError[] {
  const { apiGroup, kind, name } = parameters;
  return allErrors(
    apiGroup === undefined
      ? []
      : dns1123SubdomainErrors(apiGroup).map((text) => invalid(`${field}.apiGroup`, apiGroup, text)),
    named(`${field}.kind`, kind, pathSegmentErrors),
    named(`${field}.name`, name, pathSegmentErrors),
    validateScope(parameters, field),
  );
}

const sameController = immutable('spec.controller');

export const validateIngressClass = (ingressClass: IngressClass, old?: IngressClass): FieldError[] =>
  allErrors(
    sameController(ingressClass, old),
    validateController(ingressClass.spec?.controller ?? ''),
    ingressClass.spec?.parameters === undefined
      ? []
      : validateParameters(ingressClass.spec.parameters, 'spec.parameters'),
  );
