/** Validates the fields that containers of all lists have in common. Source: validation of v1.33 (rules and wording). */
import { allErrors, duplicate, type FieldError, invalid, required } from '../../../../../machinery/field-error.ts';
import { dns1123LabelErrors, portNameErrors, portNumberErrors } from '../../../../../machinery/names.ts';
import type { Container, ContainerPort, PodSpec, Volume } from '../../../../generated/types.ts';
import type { AnyContainer } from '../containers.ts';
import { validateEnv, validateEnvFrom } from './validate-environment.ts';
import { validateDevices, validateMounts } from './validate-mounts.ts';
import { envFieldPaths } from './validate-references.ts';
import { validateResources } from './validate-resources.ts';
import { validateSecurityContext } from './validate-security.ts';
import { choiceErrors, nameErrors, requiredName } from './validate-values.ts';

/**
 * The parts of the Pod on which the validation of a container depends. `volumes`: the valid volumes by name. `claimNames`: the names of the
 * Pod's resource claims.
 */
export interface ContainerContext {
  spec: PodSpec;
  volumes: ReadonlyMap<string, Volume>;
  claimNames: ReadonlySet<string>;
}

const pullPolicies = ['Always', 'IfNotPresent', 'Never'] as const;
const messagePolicies = ['File', 'FallbackToLogsOnError'] as const;
const protocols = ['SCTP', 'TCP', 'UDP'] as const;

const imageErrors = ({ image }: AnyContainer, path: string): FieldError[] => (image ? [] : [required(`${path}.image`)]);

/** `rules`: the rules that differ for defer containers. */
export function validateFields(
  container: AnyContainer,
  context: ContainerContext,
  path: string,
  rules: { fieldPaths?: readonly string[]; images?: FieldError[] } = {},
): FieldError[] {
  const { fieldPaths = envFieldPaths, images = imageErrors(container, path) } = rules;
  const hostUsers = context.spec.hostUsers ?? true;
  return allErrors(
    requiredName(container.name, `${path}.name`, dns1123LabelErrors),
    images,
    choiceErrors(container.terminationMessagePolicy, `${path}.terminationMessagePolicy`, messagePolicies),
    validatePorts(container.ports, `${path}.ports`),
    validateEnv(container.env, `${path}.env`, fieldPaths),
    validateEnvFrom(container.envFrom, `${path}.envFrom`),
    validateMounts(container, context.volumes, `${path}.volumeMounts`),
    validateDevices(container, context.volumes, `${path}.volumeDevices`),
    choiceErrors(container.imagePullPolicy, `${path}.imagePullPolicy`, pullPolicies),
    validateResources(container.resources, context.claimNames, `${path}.resources`),
    validateResizePolicy(container, context.spec, `${path}.resizePolicy`),
    validateSecurityContext(container.securityContext, hostUsers, `${path}.securityContext`),
  );
}

/** Unlike upstream, which allows whitespace around the name of an image in templates, lifepod rejects the whitespace there, too. */
export const validateImageSpaces = ({ image = '' }: AnyContainer, path: string): FieldError[] =>
  image.trim() === image ? [] : [invalid(`${path}.image`, image, 'must not have leading or trailing whitespace')];

function validatePorts(ports: readonly ContainerPort[] | undefined, path: string): FieldError[] {
  if (ports === undefined) return [];
  const names = new Set<string>();
  return ports.flatMap(({ name, containerPort, hostPort, protocol }, index) => {
    const at = `${path}[${index}]`;
    const errors: FieldError[] = [];
    if (name) {
      errors.push(...nameErrors(name, `${at}.name`, portNameErrors));
      if (errors.length === 0 && names.has(name)) errors.push(duplicate(`${at}.name`, name));
      names.add(name);
    }
    if (!containerPort) errors.push(required(`${at}.containerPort`));
    else {
      const texts = portNumberErrors(containerPort);
      errors.push(...texts.map((text) => invalid(`${at}.containerPort`, containerPort, text)));
    }
    if (hostPort) {
      errors.push(...portNumberErrors(hostPort).map((text) => invalid(`${at}.hostPort`, hostPort, text)));
    }
    return allErrors(errors, choiceErrors(protocol, `${at}.protocol`, protocols));
  });
}

const hostPortKey = ({ protocol, hostIP = '', hostPort }: ContainerPort): string => `${protocol}/${hostIP}/${hostPort}`;

/** Returns the host ports of the containers, as keys that consist of protocol, IP and port. */
export const hostPortsOf = (containers: readonly Container[]): Set<string> =>
  new Set(
    containers.flatMap(({ ports }) => (ports ?? []).filter(({ hostPort }) => (hostPort ?? 0) !== 0).map(hostPortKey)),
  );

export function validateHostPorts(containers: readonly Container[], path: string): FieldError[] {
  const taken = new Set<string>();
  return containers.flatMap((container, index) => takeHostPorts(container, taken, `${path}[${index}]`));
}

/** Adds the container's host ports to `taken`. Returns an error for each port that is already in `taken` or `others`. */
export function takeHostPorts(
  { ports }: Container,
  taken: Set<string>,
  path: string,
  others?: ReadonlySet<string>,
): FieldError[] {
  return (ports ?? []).flatMap((port, index) => {
    if (!port.hostPort) return [];
    const key = hostPortKey(port);
    if (taken.has(key) || others?.has(key)) return [duplicate(`${path}.ports[${index}].hostPort`, key)];
    taken.add(key);
    return [];
  });
}

function validateResizePolicy({ resizePolicy }: AnyContainer, spec: PodSpec, path: string): FieldError[] {
  if (resizePolicy === undefined) return [];
  const seen = new Set<string>();
  return resizePolicy.flatMap(({ resourceName, restartPolicy }, index) => {
    const errors = seen.has(resourceName) ? [duplicate(`${path}[${index}]`, resourceName)] : [];
    seen.add(resourceName);
    errors.push(...choiceErrors(resourceName, path, ['cpu', 'memory']));
    errors.push(...choiceErrors(restartPolicy, path, ['NotRequired', 'RestartContainer']));
    if (spec.restartPolicy === 'Never' && restartPolicy !== 'NotRequired') {
      errors.push(invalid(path, restartPolicy, "must be 'NotRequired' when `restartPolicy` is 'Never'"));
    }
    return errors;
  });
}
