/** Validates the lists of containers of a Pod. Source: validation of v1.33 (rules and wording). */
import {
  allErrors,
  duplicate,
  type FieldError,
  forbidden,
  invalid,
  notFoundField,
  notSupported,
  required,
} from '../../../../../machinery/field-error.ts';
import type { Container, EphemeralContainer, PodSpec, Volume } from '../../../../generated/types.ts';
import { isEmpty } from '../compare.ts';
import { isSidecar } from '../containers.ts';
import {
  type ContainerContext,
  validateFields,
  validateHostPorts,
  validateImageSpaces,
} from './validate-container-fields.ts';
import { validateDeferContainers } from './validate-defers.ts';
import { validateProbesAndHooks } from './validate-probes.ts';

export function validateAllContainers(spec: PodSpec, volumes: ReadonlyMap<string, Volume>): FieldError[] {
  const claimNames = new Set((spec.resourceClaims ?? []).map((claim) => claim.name));
  const context: ContainerContext = { spec, volumes, claimNames };
  return allErrors(
    validateAppContainers(context),
    validateInitContainers(context),
    validateDeferContainers(context),
    validateEphemeralContainers(spec.ephemeralContainers ?? [], context),
  );
}

function validateAppContainers(context: ContainerContext): FieldError[] {
  const { spec } = context;
  const path = 'spec.containers';
  if (spec.containers.length === 0) return [required(path)];
  const names = new Set<string>();
  const errors = spec.containers.flatMap((container, index) => {
    const at = `${path}[${index}]`;
    const found = validateFields(container, context, at);
    if (names.has(container.name)) found.push(duplicate(`${at}.name`, container.name));
    names.add(container.name);
    found.push(...validateProbesAndHooks(container, spec.terminationGracePeriodSeconds, at));
    if (container.restartPolicy !== undefined) {
      found.push(forbidden(`${at}.restartPolicy`, 'may not be set for non-init containers'));
    }
    return found;
  });
  return allErrors(errors, validateHostPorts(spec.containers, path));
}

function validateInitContainers(context: ContainerContext): FieldError[] {
  const { spec } = context;
  if (spec.initContainers === undefined) return [];
  const path = 'spec.initContainers';
  const names = new Set(spec.containers.map((container) => container.name));
  return spec.initContainers.flatMap((container, index) => {
    const at = `${path}[${index}]`;
    const errors = validateFields(container, context, at);
    if (container.restartPolicy !== undefined && container.restartPolicy !== 'Always') {
      errors.push(notSupported(`${at}.restartPolicy`, container.restartPolicy, ['Always']));
    }
    if (names.has(container.name)) errors.push(duplicate(`${at}.name`, container.name));
    else if (container.name) names.add(container.name);
    // Like upstream, the ports of different init containers are not compared, although sidecars run at the same time, and the index in the
    // errors' paths is always 0.
    errors.push(...validateHostPorts([container], path));
    errors.push(...validateInitHooks(container, spec.terminationGracePeriodSeconds, at));
    return errors;
  });
}

/** Only sidecars may have probes and hooks: other init containers terminate before the next container starts. */
function validateInitHooks(container: Container, gracePeriodSeconds: number | undefined, path: string): FieldError[] {
  if (isSidecar(container)) return validateProbesAndHooks(container, gracePeriodSeconds, path);
  return (['lifecycle', 'livenessProbe', 'readinessProbe', 'startupProbe'] as const)
    .filter((field) => container[field])
    .map((field) => forbidden(`${path}.${field}`, 'may not be set for init containers without restartPolicy=Always'));
}

const forbiddenInEphemeral = [
  'ports',
  'resources',
  'resizePolicy',
  'lifecycle',
  'livenessProbe',
  'readinessProbe',
  'startupProbe',
  'restartPolicy',
] as const satisfies readonly (keyof EphemeralContainer)[];

function validateEphemeralContainers(
  containers: readonly EphemeralContainer[],
  context: ContainerContext,
): FieldError[] {
  if (containers.length === 0) return [];
  const { spec } = context;
  const targets = new Set([...spec.containers, ...(spec.initContainers ?? [])].map((container) => container.name));
  const deferNames = new Set((spec.deferContainers ?? []).map((entry) => entry.name));
  const names = new Set([...targets, ...deferNames]);
  return containers.flatMap((container, index) => {
    const at = `spec.ephemeralContainers[${index}]`;
    const errors = allErrors(validateFields(container, context, at), validateImageSpaces(container, at));
    if (names.has(container.name)) errors.push(duplicate(`${at}.name`, container.name));
    names.add(container.name);
    const target = container.targetContainerName;
    if (target && deferNames.has(target)) {
      // Ephemeral containers start before the Pod terminates, when no defer container runs whose namespaces they could join.
      errors.push(invalid(`${at}.targetContainerName`, target, 'must not be a defer container'));
    } else if (target && !targets.has(target)) errors.push(notFoundField(`${at}.targetContainerName`, target));
    const refuse = (path: string) => errors.push(forbidden(path, 'cannot be set for an Ephemeral Container'));
    for (const field of forbiddenInEphemeral) if (!isEmpty(container[field])) refuse(`${at}.${field}`);
    (container.volumeMounts ?? []).forEach((mount, mountIndex) => {
      if (mount.subPath) refuse(`${at}.volumeMounts[${mountIndex}].subPath`);
      if (mount.subPathExpr) refuse(`${at}.volumeMounts[${mountIndex}].subPathExpr`);
    });
    return errors;
  });
}
