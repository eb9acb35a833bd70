/**
 * Source: validateResourceOverlap and validateResourceNames of k8s.io/apiserver/pkg/apis/apiserver/validation in v1.33 (rules and wording).
 */
import { type FieldError, invalid } from '../../machinery/field-error.ts';

/** Resources that upstream stores but does not serve in the API. */
const NOT_SERVED: readonly string[] = ['apiserveripinfo', 'serviceipallocations', 'servicenodeportallocations'];

const groupOf = (name: string): string => (name.includes('.') ? name.slice(name.indexOf('.') + 1) : '');

/** `names`: such as `secrets`, `deployments.apps`, `*.apps`, `*.` and `*.*`. */
export const checkResources = (names: readonly string[], path: string): FieldError[] => [
  ...overlapErrors(names, path),
  ...names.flatMap((name, index) => nameErrors(name, `${path}[${index}]`)),
];

function overlapErrors(names: readonly string[], path: string): FieldError[] {
  const errors: FieldError[] = [];
  if (new Set(names).size < names.length) {
    errors.push(invalid(path, names, 'the same resource cannot be specified multiple times'));
  }
  const isMasked = (name: string): boolean =>
    names.some((other) => other !== name && (other === '*.*' || other === `*.${groupOf(name)}`));
  if (names.some(isMasked)) {
    const text =
      "using overlapping resources such as 'secrets' and '*.' in the same resource list is not allowed as they will be masked";
    errors.push(invalid(path, names, text));
  }
  return errors;
}

function nameErrors(name: string, path: string): FieldError[] {
  const wrong = (text: string): FieldError[] => [invalid(path, name, text)];
  const group = groupOf(name);
  if (name !== name.toLowerCase()) return wrong('resource name should not contain capital letters');
  if (name === '*')
    return wrong("use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources");
  if (NOT_SERVED.includes(name)) return wrong('resources which do not have REST API/s cannot be encrypted');
  if (group === 'events.k8s.io') {
    return wrong(
      "'*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use 'events' instead in the config file",
    );
  }
  if (group === 'extensions') return wrong("'extensions' group has been removed and cannot be used for encryption");
  if (group === '*' && name !== '*.*') return wrong('encrypting the same resource across groups is not supported');
  return [];
}
