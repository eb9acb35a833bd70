/**
 * The containers of a Pod: init, app, defer and ephemeral. Source: validation of v1.33 (rules and wording); the rules of
 * defer containers: their specification.
 */
import {
  duplicate,
  type FieldError,
  forbidden,
  invalid,
  notFoundField,
  notSupported,
  required,
} from '../../../../machinery/field-error.ts';
import { dns1123LabelErrors, portNameErrors, portNumberErrors } from '../../../../machinery/names.ts';
import type {
  Container,
  ContainerPort,
  DeferContainer,
  EphemeralContainer,
  PodSpec,
  Volume,
} from '../../../generated/types.ts';
import { type AnyContainer, isSidecar, runsBeforeExit } from './containers.ts';
import { validateEnv, validateEnvFrom } from './validate-environment.ts';
import { validateDevices, validateMounts } from './validate-mounts.ts';
import { validateProbesAndHooks } from './validate-probes.ts';
import { deferEnvFieldPaths, envFieldPaths } from './validate-references.ts';
import { validateResources } from './validate-resources.ts';
import { validateSecurityContext } from './validate-security.ts';
import { nameErrors, positive, requiredName } from './validate-values.ts';

/** What a container's rules depend on beside itself. */
interface Surroundings {
  spec: PodSpec;
  volumes: ReadonlyMap<string, Volume>;
  claimNames: ReadonlySet<string>;
}

const pullPolicies = ['Always', 'IfNotPresent', 'Never'] as const;
const messagePolicies = ['File', 'FallbackToLogsOnError'] as const;
const protocols = ['SCTP', 'TCP', 'UDP'] as const;

export function validateAllContainers(spec: PodSpec, volumes: ReadonlyMap<string, Volume>): FieldError[] {
  const claimNames = new Set((spec.resourceClaims ?? []).map((claim) => claim.name));
  const around: Surroundings = { spec, volumes, claimNames };
  return [
    ...validateAppContainers(around),
    ...validateInitContainers(around),
    ...validateDeferContainers(around),
    ...validateEphemeralContainers(spec.ephemeralContainers ?? [], around),
  ];
}

function validateAppContainers(around: Surroundings): FieldError[] {
  const { spec } = around;
  const path = 'spec.containers';
  if (spec.containers.length === 0) return [required(path)];
  const names = new Set<string>();
  const errors = spec.containers.flatMap((container, index) => {
    const at = `${path}[${index}]`;
    const found = validateCommon(container, around, at);
    if (names.has(container.name)) found.push(duplicate(`${at}.name`, container.name));
    names.add(container.name);
    found.push(...validateProbesAndHooks(container, spec.terminationGracePeriodSeconds, at));
    if (container.restartPolicy !== undefined) {
      found.push(forbidden(`${at}.restartPolicy`, 'may not be set for non-init containers'));
    }
    return found;
  });
  return [...errors, ...validateHostPorts(spec.containers, path)];
}

function validateInitContainers(around: Surroundings): FieldError[] {
  const { spec } = around;
  const path = 'spec.initContainers';
  const names = new Set(spec.containers.map((container) => container.name));
  return (spec.initContainers ?? []).flatMap((container, index) => {
    const at = `${path}[${index}]`;
    const errors = validateCommon(container, around, at);
    if (container.restartPolicy !== undefined && container.restartPolicy !== 'Always') {
      errors.push(notSupported(`${at}.restartPolicy`, container.restartPolicy, ['Always']));
    }
    if (names.has(container.name)) errors.push(duplicate(`${at}.name`, container.name));
    else if (container.name) names.add(container.name);
    // One by one: init containers do not run together. Upstream reports the index of the port's container as 0.
    errors.push(...validateHostPorts([container], path));
    errors.push(...validateInitHooks(container, spec.terminationGracePeriodSeconds, at));
    return errors;
  });
}

/** An init container that must end before the next starts cannot be probed: only sidecars have these fields. */
function validateInitHooks(container: Container, gracePeriodSeconds: number | undefined, path: string): FieldError[] {
  if (isSidecar(container)) return validateProbesAndHooks(container, gracePeriodSeconds, path);
  return (['lifecycle', 'livenessProbe', 'readinessProbe', 'startupProbe'] as const)
    .filter((field) => container[field])
    .map((field) => forbidden(`${path}.${field}`, 'may not be set for init containers without restartPolicy=Always'));
}

const triggers = ['PreExit', 'PostExit'] as const;
const deferRestartPolicies = ['Always', 'OnFailure', 'Never'] as const;

function validateDeferContainers(around: Surroundings): FieldError[] {
  const { spec } = around;
  const path = 'spec.deferContainers';
  const names = new Set([...spec.containers, ...(spec.initContainers ?? [])].map((container) => container.name));
  let afterExit = false;
  return (spec.deferContainers ?? []).flatMap((entry, index) => {
    const at = `${path}[${index}]`;
    const errors = validateCommon(entry, around, at, deferEnvFieldPaths);
    errors.push(...choiceErrors(entry.trigger, `${at}.trigger`, triggers));
    errors.push(...choiceErrors(entry.restartPolicy, `${at}.restartPolicy`, deferRestartPolicies));
    if (names.has(entry.name)) errors.push(duplicate(`${at}.name`, entry.name));
    else if (entry.name) names.add(entry.name);
    if (entry.trigger === 'PreExit' && afterExit) {
      errors.push(invalid(`${at}.trigger`, entry.trigger, 'must not come after an entry with trigger PostExit'));
    }
    afterExit ||= entry.trigger === 'PostExit';
    errors.push(...positive(entry.timeoutSeconds, `${at}.timeoutSeconds`));
    const taken = new Set<string>();
    for (const other of runningBeside(entry, spec)) takeHostPorts(other, taken, '');
    errors.push(...takeHostPorts(entry, taken, at));
    const { lifecycle, readinessProbe, startupProbe, ...allowed } = entry;
    errors.push(...validateProbesAndHooks(allowed, spec.terminationGracePeriodSeconds, at));
    for (const [field, value] of Object.entries({ lifecycle, readinessProbe, startupProbe })) {
      if (value) errors.push(forbidden(`${at}.${field}`, 'may not be set for defer containers'));
    }
    return errors;
  });
}

/** Entries run one after the other: before the exit beside apps and sidecars, after it beside sidecars. */
const runningBeside = (entry: DeferContainer, spec: PodSpec): Container[] => [
  ...(spec.initContainers ?? []).filter(isSidecar),
  ...(runsBeforeExit(entry) ? spec.containers : []),
];

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

const isSet = (value: unknown): boolean =>
  value != null && value !== '' && (typeof value !== 'object' || Object.keys(value).length > 0);

function validateEphemeralContainers(containers: readonly EphemeralContainer[], around: Surroundings): FieldError[] {
  const { spec } = around;
  const targets = new Set([...spec.containers, ...(spec.initContainers ?? [])].map((container) => container.name));
  const deferNames = new Set((spec.deferContainers ?? []).map((entry) => entry.name));
  const names = new Set([...targets, ...deferNames]);
  return containers.flatMap((container, index) => {
    const at = `spec.ephemeralContainers[${index}]`;
    const errors = [...validateCommon(container, around, at), ...validateImageSpaces(container, at)];
    if (names.has(container.name)) errors.push(duplicate(`${at}.name`, container.name));
    names.add(container.name);
    const target = container.targetContainerName;
    if (target && deferNames.has(target)) {
      // Ephemeral containers start while the Pod lives, defer containers once it ends: there is never one to join.
      errors.push(invalid(`${at}.targetContainerName`, target, 'must not be a defer container'));
    } else if (target && !targets.has(target)) errors.push(notFoundField(`${at}.targetContainerName`, target));
    const refuse = (path: string) => errors.push(forbidden(path, 'cannot be set for an Ephemeral Container'));
    for (const field of forbiddenInEphemeral) if (isSet(container[field])) refuse(`${at}.${field}`);
    (container.volumeMounts ?? []).forEach((mount, mountIndex) => {
      if (mount.subPath) refuse(`${at}.volumeMounts[${mountIndex}].subPath`);
      if (mount.subPathExpr) refuse(`${at}.volumeMounts[${mountIndex}].subPathExpr`);
    });
    return errors;
  });
}

function validateCommon(
  container: AnyContainer,
  around: Surroundings,
  path: string,
  fieldPaths: readonly string[] = envFieldPaths,
): FieldError[] {
  const hostUsers = around.spec.hostUsers ?? true;
  return [
    ...requiredName(container.name, `${path}.name`, dns1123LabelErrors),
    ...(container.image ? [] : [required(`${path}.image`)]),
    ...choiceErrors(container.terminationMessagePolicy, `${path}.terminationMessagePolicy`, messagePolicies),
    ...validatePorts(container.ports, `${path}.ports`),
    ...validateEnv(container.env, `${path}.env`, fieldPaths),
    ...validateEnvFrom(container.envFrom, `${path}.envFrom`),
    ...validateMounts(container, around.volumes, `${path}.volumeMounts`),
    ...validateDevices(container, around.volumes, `${path}.volumeDevices`),
    ...choiceErrors(container.imagePullPolicy, `${path}.imagePullPolicy`, pullPolicies),
    ...validateResources(container.resources, around.claimNames, `${path}.resources`),
    ...validateResizePolicy(container, around.spec, `${path}.resizePolicy`),
    ...validateSecurityContext(container.securityContext, hostUsers, `${path}.securityContext`),
  ];
}

const choiceErrors = (value: string | undefined, path: string, choices: readonly string[]): FieldError[] => {
  if (!value) return [required(path)];
  return choices.includes(value) ? [] : [notSupported(path, value, choices)];
};

/** Pods, unlike templates of them, may not have spaces around an image's name. */
export const validateImageSpaces = ({ image = '' }: AnyContainer, path: string): FieldError[] =>
  image.trim() === image ? [] : [invalid(`${path}.image`, image, 'must not have leading or trailing whitespace')];

function validatePorts(ports: readonly ContainerPort[] | undefined, path: string): FieldError[] {
  const names = new Set<string>();
  return (ports ?? []).flatMap(({ name, containerPort, hostPort, protocol }, index) => {
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
    return [...errors, ...choiceErrors(protocol, `${at}.protocol`, protocols)];
  });
}

/** The ports that one of the containers wants though another has them. */
function validateHostPorts(containers: readonly Container[], path: string): FieldError[] {
  const taken = new Set<string>();
  return containers.flatMap((container, index) => takeHostPorts(container, taken, `${path}[${index}]`));
}

function takeHostPorts({ ports }: Container, taken: Set<string>, path: string): FieldError[] {
  return (ports ?? []).flatMap(({ protocol, hostIP = '', hostPort }, index) => {
    if (!hostPort) return [];
    const key = `${protocol}/${hostIP}/${hostPort}`;
    if (taken.has(key)) return [duplicate(`${path}.ports[${index}].hostPort`, key)];
    taken.add(key);
    return [];
  });
}

function validateResizePolicy({ resizePolicy }: AnyContainer, spec: PodSpec, path: string): FieldError[] {
  const seen = new Set<string>();
  return (resizePolicy ?? []).flatMap(({ resourceName, restartPolicy }, index) => {
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
