/**
 * Validates the references in environment variables and volumes to fields of the Pod, resources of a container, and keys of ConfigMaps and
 * Secrets. Source: validation of v1.33 (rules and wording).
 */
import { allErrors, type FieldError, invalid, notSupported, required } from '../../../../../machinery/field-error.ts';
import { configMapKeyErrors, dns1123SubdomainErrors, qualifiedNameErrors } from '../../../../../machinery/names.ts';
import { canonicalQuantity } from '../../../../../machinery/quantity.ts';
import type { ConfigMapKeySelector, ObjectFieldSelector, ResourceFieldSelector } from '../../../../generated/types.ts';
import { nameErrors, requiredText } from './validate-values.ts';

export const envFieldPaths = [
  'metadata.name',
  'metadata.namespace',
  'metadata.uid',
  'spec.nodeName',
  'spec.serviceAccountName',
  'status.hostIP',
  'status.hostIPs',
  'status.podIP',
  'status.podIPs',
] as const;

/** Only variables of defer containers and volumes of Pods with defer containers may use these paths. */
const terminationFieldPaths = [
  'status.termination.containers',
  'status.termination.deadline',
  'status.termination.exitCodes',
  'status.termination.reason',
] as const;

export const deferEnvFieldPaths = [...envFieldPaths, ...terminationFieldPaths] as const;

export const volumeFieldPaths = [
  'metadata.annotations',
  'metadata.labels',
  'metadata.name',
  'metadata.namespace',
  'metadata.uid',
] as const;

export const deferVolumeFieldPaths = [...volumeFieldPaths, ...terminationFieldPaths] as const;

/** The error for a known path to which a reference may not refer differs from the error for an unknown path. */
const knownFieldPaths = new Set<string>([
  ...deferEnvFieldPaths,
  ...volumeFieldPaths,
  'spec.restartPolicy',
  'status.phase',
]);

export function validateFieldRef(
  reference: ObjectFieldSelector,
  path: string,
  supported: readonly string[],
): FieldError[] {
  if (!reference.apiVersion) return [required(`${path}.apiVersion`)];
  if (!reference.fieldPath) return [required(`${path}.fieldPath`)];
  const fieldPath = reference.fieldPath === 'spec.host' ? 'spec.nodeName' : reference.fieldPath;
  const unknown = (cause: string) => [
    invalid(`${path}.fieldPath`, reference.fieldPath, `error converting fieldPath: ${cause}`),
  ];
  if (reference.apiVersion !== 'v1') return unknown(`unsupported pod version: ${reference.apiVersion}`);
  const subscript = fieldPath.indexOf("['");
  if (subscript !== -1 && subscript + 4 <= fieldPath.length && fieldPath.endsWith("']")) {
    const [base, key] = [fieldPath.slice(0, subscript), fieldPath.slice(subscript + 2, -2)];
    if (base === 'metadata.annotations') return nameErrors(key.toLowerCase(), path, qualifiedNameErrors);
    if (base === 'metadata.labels') return nameErrors(key, path, qualifiedNameErrors);
    return unknown(`field label does not support subscript: ${fieldPath}`);
  }
  if (!knownFieldPaths.has(fieldPath)) return unknown(`field label not supported: ${fieldPath}`);
  return supported.includes(fieldPath) ? [] : [notSupported(`${path}.fieldPath`, fieldPath, supported)];
}

const containerResources = [
  'limits.cpu',
  'limits.ephemeral-storage',
  'limits.memory',
  'requests.cpu',
  'requests.ephemeral-storage',
  'requests.memory',
] as const;

const byteDivisors = ['1', '1k', '1M', '1G', '1T', '1P', '1E', '1Ki', '1Mi', '1Gi', '1Ti', '1Pi', '1Ei'] as const;

/**
 * Returns the divisors that are allowed for the resource besides 0, and texts for the error about other divisors; undefined if all divisors
 * are allowed.
 */
function divisorRule(resource: string): { allowed: readonly string[]; shown: string; name: string } | undefined {
  const bytes = (name: string) => ({ allowed: byteDivisors, shown: byteDivisors.join(', '), name });
  if (resource.endsWith('.cpu')) return { allowed: ['1m', '1'], shown: '1m and 1', name: 'cpu' };
  if (resource.endsWith('.memory')) return bytes('memory');
  if (resource.endsWith('.ephemeral-storage')) return bytes('local ephemeral storage');
  return resource.includes('.hugepages-') ? bytes('hugepages') : undefined;
}

/** `needsContainer`: the reference must name a container, because it is in a volume of the Pod. */
export function validateResourceFieldRef(
  { containerName, resource, divisor }: ResourceFieldSelector,
  path: string,
  needsContainer: boolean,
): FieldError[] {
  const errors: FieldError[] = [];
  if (needsContainer && !containerName) errors.push(required(`${path}.containerName`));
  else if (!resource) errors.push(required(`${path}.resource`));
  else if (
    !(containerResources as readonly string[]).includes(resource) &&
    !/^(requests|limits)\.hugepages-/.test(resource)
  ) {
    errors.push(notSupported(`${path}.resource`, resource, containerResources));
  }
  const rule = divisorRule(resource ?? '');
  const value = canonicalQuantity(divisor ?? '0');
  if (rule !== undefined && value !== '0' && (value === undefined || !rule.allowed.includes(value))) {
    errors.push(
      invalid(
        `${path}.divisor`,
        resource,
        `only divisor's values ${rule.shown} are supported with the ${rule.name} resource`,
      ),
    );
  }
  return errors;
}

export const validateKeyRef = ({ name, key }: ConfigMapKeySelector, path: string): FieldError[] =>
  allErrors(
    nameErrors(name ?? '', `${path}.name`, dns1123SubdomainErrors),
    key ? nameErrors(key, `${path}.key`, configMapKeyErrors) : requiredText(key, `${path}.key`),
  );
