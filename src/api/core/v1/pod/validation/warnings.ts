/** Warnings to the client about fields of a valid Pod that are deprecated or probably a mistake. Source: v1.33 (rules and wording). */

import { repeats } from '../../../../../machinery/duplicates.ts';
import { dns1123LabelErrors } from '../../../../../machinery/names.ts';
import type {
  ContainerPort,
  EnvVar,
  Pod,
  PodAffinityTerm,
  PodSpec,
  SecurityContext,
  Volume,
} from '../../../../generated/types.ts';
import { fractionWarnings } from '../../fraction-warnings.ts';
import { claimSpecWarnings } from '../../persistent-volume-claim/warnings.ts';
import { deferSettingsWarnings } from '../compatibility/defer-settings.ts';
import { olderFormWarnings } from '../compatibility/older-forms.ts';
import { type ContainerAtPath, containersWithPath, specOf } from '../containers.ts';
import { deferWarnings } from './defer-warnings.ts';

const BYTES = ['memory', 'ephemeral-storage'];

export function podWarnings(pod: Pod): string[] {
  const spec = specOf(pod);
  const containers = containersWithPath(spec);
  // concat() allocates less than spreading so many lists, most of which are empty.
  return nameWarnings(pod).concat(
    nodeLabelWarnings(spec),
    annotationWarnings(pod),
    (spec.volumes ?? []).flatMap(volumeWarnings),
    duplicates(
      spec.hostAliases?.map(({ ip }) => ip),
      (index, ip) => `spec.hostAliases[${index}].ip: duplicate ip ${ip}`,
    ),
    pullSecretWarnings(spec),
    fractionWarnings(spec.overhead, BYTES, 'spec.overhead'),
    seccompWarnings(pod, 'seccomp.security.alpha.kubernetes.io/pod', spec.securityContext),
    containers.flatMap(({ container, path }) =>
      seccompWarnings(pod, `${SECCOMP_KEY_PREFIX}${container.name}`, container.securityContext).concat(
        fractionWarnings(container.resources?.limits, BYTES, `${path}.resources.limits`),
        fractionWarnings(container.resources?.requests, BYTES, `${path}.resources.requests`),
        envWarnings(container.env, `${path}.env`),
      ),
    ),
    portWarnings(containers),
    (spec.terminationGracePeriodSeconds ?? 0) < 0
      ? ['spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1']
      : [],
    affinityWarnings(spec),
    deferWarnings(spec),
    olderFormWarnings(pod),
    deferSettingsWarnings(pod),
  );
}

function nameWarnings({ metadata }: Pod): string[] {
  const errors = dns1123LabelErrors(metadata.name ?? '');
  return errors.length === 0
    ? []
    : [
        `metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: [${errors.join(' ')}]`,
      ];
}

const deprecatedLabels: Readonly<Record<string, string>> = {
  'beta.kubernetes.io/arch': 'deprecated since v1.14; use "kubernetes.io/arch" instead',
  'beta.kubernetes.io/os': 'deprecated since v1.14; use "kubernetes.io/os" instead',
  'failure-domain.beta.kubernetes.io/region': 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
  'failure-domain.beta.kubernetes.io/zone': 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
  'beta.kubernetes.io/instance-type': 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
};

const nodeLabelWarnings = (spec: PodSpec): string[] =>
  Object.keys(spec.nodeSelector ?? {})
    .flatMap((key) =>
      Object.hasOwn(deprecatedLabels, key) ? [`spec.nodeSelector[${key}]: ${deprecatedLabels[key]}`] : [],
    )
    .concat(
      (spec.topologySpreadConstraints ?? []).flatMap(({ labelSelector }, index) =>
        labelSelector
          ? []
          : [`spec.topologySpreadConstraints[${index}].labelSelector: a null labelSelector results in matching no pod`],
      ),
    );

const deprecatedAnnotations: Readonly<Record<string, string>> = {
  'scheduler.alpha.kubernetes.io/critical-pod': 'non-functional in v1.16+; use the "priorityClassName" field instead',
  'security.alpha.kubernetes.io/sysctls': 'non-functional in v1.11+; use the "sysctls" field instead',
  'security.alpha.kubernetes.io/unsafe-sysctls': 'non-functional in v1.11+; use the "sysctls" field instead',
};
const deprecatedKeys = Object.keys(deprecatedAnnotations);
const SECCOMP_KEY_PREFIX = 'container.seccomp.security.alpha.kubernetes.io/';

function annotationWarnings({ metadata: { annotations } }: Pod): string[] {
  if (annotations === undefined) return [];
  return deprecatedKeys
    .filter((key) => annotations[key] !== undefined)
    .map((key) => `metadata.annotations[${key}]: ${deprecatedAnnotations[key]}`);
}

const seccompWarnings = (
  { metadata }: Pod,
  key: string,
  context: Pick<SecurityContext, 'seccompProfile'> | undefined,
): string[] =>
  metadata.annotations?.[key] === undefined || context?.seccompProfile !== undefined
    ? []
    : [`metadata.annotations[${key}]: non-functional in v1.27+; use the "seccompProfile" field instead`];

const deprecatedVolumes: Partial<Record<keyof Volume, string>> = {
  photonPersistentDisk: 'deprecated in v1.11, non-functional in v1.16+',
  gitRepo: 'deprecated in v1.11',
  scaleIO: 'deprecated in v1.16, non-functional in v1.22+',
  flocker: 'deprecated in v1.22, non-functional in v1.25+',
  storageos: 'deprecated in v1.22, non-functional in v1.25+',
  quobyte: 'deprecated in v1.22, non-functional in v1.25+',
  glusterfs: 'deprecated in v1.25, non-functional in v1.26+',
  cephfs: 'deprecated in v1.28, non-functional in v1.31+',
  rbd: 'deprecated in v1.28, non-functional in v1.31+',
};

function volumeWarnings(volume: Volume, index: number): string[] {
  const path = `spec.volumes[${index}]`;
  const deprecated = (Object.keys(volume) as (keyof Volume)[])
    .filter((source) => volume[source] != null && deprecatedVolumes[source] !== undefined)
    .map((source) => `${path}.${source}: ${deprecatedVolumes[source]}`);
  const claim = volume.ephemeral?.volumeClaimTemplate?.spec;
  if (claim === undefined) return deprecated;
  return [...deprecated, ...claimSpecWarnings(claim, `${path}.ephemeral.volumeClaimTemplate.spec`)];
}

function duplicates(
  values: readonly string[] | undefined,
  warning: (index: number, shown: string) => string,
): string[] {
  if (values === undefined) return [];
  const repeated = repeats(values);
  return values.flatMap((value, index) => (repeated[index] ? [warning(index, JSON.stringify(value))] : []));
}

function pullSecretWarnings({ imagePullSecrets }: PodSpec): string[] {
  if (imagePullSecrets === undefined) return [];
  const names = imagePullSecrets.map(({ name }) => name ?? '');
  return [
    ...duplicates(names, (index, name) => `spec.imagePullSecrets[${index}].name: duplicate name ${name}`),
    ...names.flatMap((name, index) =>
      name === '' ? [`spec.imagePullSecrets[${index}].name: invalid empty name ""`] : [],
    ),
  ];
}

/** Warns about variables that are defined more than once, unless the later definition extends the earlier one, as in X=$(X)123. */
function envWarnings(variables: readonly EnvVar[] | undefined, path: string): string[] {
  if (variables === undefined) return [];
  const seen = new Set<string>();
  return variables.flatMap(({ name, value = '', valueFrom }, index) => {
    const first = !seen.has(name);
    seen.add(name);
    if (first || (!valueFrom && value !== `$(${name})` && refersTo(value, name))) return [];
    const shown = JSON.stringify(name);
    return [`${path}[${index}]: hides previous definition of ${shown}, which may be dropped when using apply`];
  });
}

/**
 * Whether the value contains `$(name)`. value.includes() would take quadratic time for some long names, and returns a different result only
 * for names that contain "$(".
 */
const refersTo = (value: string, name: string): boolean =>
  value
    .split('$(')
    .slice(1)
    .some((rest) => rest.startsWith(`${name})`));

/** The maximum number of earlier ports of the same number and protocol with which a port is compared. */
const COMPARED_PORTS = 16;
/** Further ports are not compared after this number of warnings, because more warnings do not fit into a response's headers. */
const MAX_PORT_WARNINGS = 100;

function portWarnings(containers: readonly ContainerAtPath[]): string[] {
  const seen = new Map<string, { port: ContainerPort; path: string; index: number }[]>();
  const warnings: string[] = [];
  for (const { container, path } of containers) {
    for (const [index, port] of (container.ports ?? []).entries()) {
      if (warnings.length >= MAX_PORT_WARNINGS) return warnings;
      const key = `${port.containerPort}/${port.protocol}`;
      const others = seen.get(key) ?? [];
      if (others.length === 0) seen.set(key, others);
      for (const other of others) {
        const relation = portRelation(port, other.port);
        if (relation === undefined) continue;
        const earlier = `${other.path}.ports[${other.index}]`;
        warnings.push(`${path}.ports[${index}]: ${relation} port definition with ${earlier}`);
      }
      if (others.length < COMPARED_PORTS) others.push({ port, path, index });
    }
  }
  return warnings;
}

function portRelation(a: ContainerPort, b: ContainerPort): string | undefined {
  const [ipA, ipB, hostA, hostB] = [a.hostIP ?? '', b.hostIP ?? '', a.hostPort ?? 0, b.hostPort ?? 0];
  if (ipA === ipB && hostA === hostB) return 'duplicate';
  if (hostA === 0 || hostB === 0) return 'overlapping';
  return hostA === hostB && (ipA === '') !== (ipB === '') ? 'dangerously ambiguous' : undefined;
}

function affinityWarnings({ affinity }: PodSpec): string[] {
  if (affinity === undefined) return [];
  const warn = (terms: readonly PodAffinityTerm[], path: (index: number) => string): string[] =>
    terms.flatMap((term, index) =>
      term.labelSelector ? [] : [`${path(index)}.labelSelector: a null labelSelector results in matching no pod`],
    );
  return (['podAffinity', 'podAntiAffinity'] as const).flatMap((kind) => {
    const path = `spec.affinity.${kind}`;
    const needed = affinity?.[kind]?.requiredDuringSchedulingIgnoredDuringExecution ?? [];
    const preferred = affinity?.[kind]?.preferredDuringSchedulingIgnoredDuringExecution ?? [];
    return [
      ...warn(needed, (index) => `${path}.requiredDuringSchedulingIgnoredDuringExecution[${index}]`),
      ...warn(
        preferred.map((term) => term.podAffinityTerm),
        (index) => `${path}.preferredDuringSchedulingIgnoredDuringExecution[${index}].podAffinityTerm`,
      ),
    ];
  });
}
