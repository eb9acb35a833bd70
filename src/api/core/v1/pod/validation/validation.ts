/**
 * Validates a Pod and returns all its errors, with upstream's paths and messages.
 *
 * The defaults of the Pod must be set. validatePod() contains the rules for all Pods; validatePodCreate() adds the rules for new Pods, and
 * validate-update.ts the rules for updates. Rules that need other objects are in admission.ts and runtime-class.ts.
 * Source: pkg/apis/core/validation of v1.33 (rules, order and wording).
 */
import { allErrors, type FieldError, forbidden, invalid, required } from '../../../../../machinery/field-error.ts';
import {
  dns1123LabelErrors,
  dns1123SubdomainErrors,
  inclusiveRangeText,
  ipErrors,
} from '../../../../../machinery/names.ts';
import { validateObjectMeta } from '../../../../../machinery/object-meta.ts';
import type { Pod, PodSpec } from '../../../../generated/types.ts';
import { sameValue } from '../compare.ts';
import type { FormFault } from '../compatibility/annotation-json.ts';
import { validateAppArmorAnnotations, validateAppArmorMatch } from '../compatibility/app-armor.ts';
import { deferSettingsFaults } from '../compatibility/defer-settings.ts';
import { type OlderForm, olderFormFaults } from '../compatibility/older-forms.ts';
import { specOf } from '../containers.ts';
import { defaultPod } from '../defaults.ts';
import { validateDeletionCost } from '../deletion-cost.ts';
import { validateMirrorCreate } from '../mirror.ts';
import { validateImageSpaces } from './validate-container-fields.ts';
import { validateAllContainers } from './validate-containers.ts';
import { validateDeferSettings } from './validate-defers.ts';
import {
  validateAffinitySize,
  validateNodeSelectorLabels,
  validatePlacement,
  validateTolerations,
} from './validate-placement.ts';
import { deferVolumeFieldPaths, volumeFieldPaths } from './validate-references.ts';
import { validateResourceList } from './validate-resources.ts';
import { validatePodSecurityContext } from './validate-security.ts';
import { choiceErrors, MAX_INT32, nameErrors } from './validate-values.ts';
import { validateVolumes } from './validate-volumes.ts';

export function validatePodCreate(pod: Pod): FieldError[] {
  const errors = validatePod(pod);
  if ((pod.spec?.ephemeralContainers ?? []).length > 0) {
    errors.push(forbidden('spec.ephemeralContainers', 'cannot be set on create'));
  }
  if (pod.spec?.nodeName && (pod.spec.schedulingGates ?? []).length > 0) {
    errors.push(forbidden('spec.nodeName', 'cannot be set until all schedulingGates have been cleared'));
  }
  errors.push(
    ...validateAffinitySize(specOf(pod)),
    ...validateAppArmorMatch(pod),
    ...validateDeletionCost(pod),
    ...validateMirrorCreate(pod),
    ...formFaults(pod).map(({ path, text, cause }) => invalid(path, text, cause)),
  );
  return errors;
}

export const formFaults = (pod: Pod): FormFault[] => [
  ...olderFormFaults(pod, (given) => asInSpec(given, pod)),
  ...deferSettingsFaults(pod),
];

/**
 * Whether the containers in the annotation equal those in the spec. Mounts of the ServiceAccount's token are not compared, because
 * admission may have added them to the spec.
 */
function asInSpec({ field, containers }: OlderForm, pod: Pod): boolean {
  const other: Pod = structuredClone({ ...pod, spec: { ...specOf(pod), [field]: containers } });
  defaultPod(other);
  const withoutToken = ({ spec }: Pod) =>
    spec?.[field]?.map((container) => ({
      ...container,
      volumeMounts: container.volumeMounts?.filter(({ name }) => !name.startsWith('kube-api-access-')),
    }));
  return sameValue(withoutToken(other), withoutToken(pod));
}

/** `isTemplate`: whether the Pod only represents a template, whose Pods get further defaults when they are created. */
export function validatePod(pod: Pod, { isTemplate = false } = {}): FieldError[] {
  const spec = specOf(pod);
  return allErrors(
    validateObjectMeta(pod.metadata, { namespaced: true, nameErrors: dns1123SubdomainErrors }),
    validateAppArmorAnnotations(pod),
    validatePodSpec(spec, isTemplate),
    validateTokenVolumes(spec),
    spec.containers.flatMap((container, index) => validateImageSpaces(container, `spec.containers[${index}]`)),
    (spec.initContainers ?? []).flatMap((container, index) =>
      validateImageSpaces(container, `spec.initContainers[${index}]`),
    ),
    (spec.deferContainers ?? []).flatMap((container, index) =>
      validateImageSpaces(container, `spec.deferContainers[${index}]`),
    ),
  );
}

function validatePodSpec(spec: PodSpec, isTemplate: boolean): FieldError[] {
  const hasDefers = (spec.deferContainers ?? []).length > 0;
  const volumes = validateVolumes(spec.volumes, hasDefers ? deferVolumeFieldPaths : volumeFieldPaths);
  return allErrors(
    spec.terminationGracePeriodSeconds === undefined ? [required('spec.terminationGracePeriodSeconds')] : [],
    volumes.errors,
    validateAllContainers(spec, volumes.byName),
    validateHostNetworkPorts(spec, isTemplate),
    validateDeferSettings(spec),
    choiceErrors(spec.restartPolicy, 'spec.restartPolicy', ['Always', 'OnFailure', 'Never']),
    choiceErrors(spec.dnsPolicy, 'spec.dnsPolicy', ['ClusterFirstWithHostNet', 'ClusterFirst', 'Default', 'None']),
    validateNodeSelectorLabels(spec.nodeSelector, 'spec.nodeSelector'),
    validatePodSecurityContext(spec, 'spec.securityContext'),
    validateDns(spec),
    validatePlacement(spec),
    validateHostUsers(spec),
    validateNames(spec),
    validateTolerations(spec.tolerations, 'spec.tolerations'),
    validateHostAliases(spec),
    validatePriority(spec),
    validateResourceList(spec.overhead, 'spec.overhead'),
    spec.os ? choiceErrors(spec.os.name, 'spec.os.name', ['linux', 'windows']) : [],
  );
}

function validateNames(spec: PodSpec): FieldError[] {
  const errors: FieldError[] = [];
  const check = (value: string | undefined, path: string, rule: (text: string) => string[]) => {
    if (value) errors.push(...nameErrors(value, path, rule));
  };
  check(spec.serviceAccountName, 'spec.serviceAccountName', dns1123SubdomainErrors);
  check(spec.nodeName, 'spec.nodeName', dns1123SubdomainErrors);
  const deadline = spec.activeDeadlineSeconds;
  if (deadline !== undefined && (deadline < 1 || deadline > MAX_INT32)) {
    errors.push(invalid('spec.activeDeadlineSeconds', deadline, inclusiveRangeText(1, MAX_INT32)));
  }
  check(spec.hostname, 'spec.hostname', dns1123LabelErrors);
  check(spec.subdomain, 'spec.subdomain', dns1123LabelErrors);
  check(spec.runtimeClassName, 'spec.runtimeClassName', dns1123SubdomainErrors);
  return errors;
}

function validatePriority(spec: PodSpec): FieldError[] {
  return allErrors(
    spec.priorityClassName ? nameErrors(spec.priorityClassName, 'spec.priorityClassName', dns1123SubdomainErrors) : [],
    spec.preemptionPolicy === undefined
      ? []
      : choiceErrors(spec.preemptionPolicy, 'spec.preemptionPolicy', ['PreemptLowerPriority', 'Never']),
  );
}

/**
 * In the host network, hostPort and containerPort of app and defer containers are the same port. A template may omit the hostPort, which
 * its Pods get by default.
 */
function validateHostNetworkPorts(spec: PodSpec, isTemplate: boolean): FieldError[] {
  if (!spec.hostNetwork) return [];
  return (['containers', 'deferContainers'] as const).flatMap((field) =>
    (spec[field] ?? []).flatMap((container, containerIndex) =>
      (container.ports ?? []).flatMap(({ hostPort, containerPort }, index) =>
        (hostPort ?? 0) === containerPort || (isTemplate && (hostPort ?? 0) === 0)
          ? []
          : [
              invalid(
                `spec.${field}[${containerIndex}].ports[${index}].hostPort`,
                hostPort ?? 0,
                'must match `containerPort` when `hostNetwork` is true',
              ),
            ],
      ),
    ),
  );
}

/** Host namespaces are forbidden for a Pod with a user namespace. The capital letters in the paths are upstream's. */
function validateHostUsers(spec: PodSpec): FieldError[] {
  if (spec.hostUsers !== false) return [];
  const errors: FieldError[] = [];
  const refuse = (path: string) => errors.push(forbidden(path, 'when `pod.Spec.HostUsers` is false'));
  if (spec.hostNetwork) refuse('spec.hostNetwork');
  if (spec.hostPID) refuse('spec.HostPID');
  if (spec.hostIPC) refuse('spec.HostIPC');
  return errors;
}

const MAX_NAMESERVERS = 3;
const MAX_SEARCHES = 32;
const MAX_SEARCH_CHARACTERS = 2048;

function validateDns({ dnsPolicy, dnsConfig }: PodSpec): FieldError[] {
  const path = 'spec.dnsConfig';
  if (dnsPolicy === 'None' && !dnsConfig) {
    return [required(path, 'must provide `dnsConfig` when `dnsPolicy` is None')];
  }
  const nameservers = dnsConfig?.nameservers ?? [];
  if (dnsPolicy === 'None' && nameservers.length === 0) {
    return [required(`${path}.nameservers`, 'must provide at least one DNS nameserver when `dnsPolicy` is None')];
  }
  const searches = dnsConfig?.searches ?? [];
  const errors: FieldError[] = [];
  if (nameservers.length > MAX_NAMESERVERS) {
    errors.push(invalid(`${path}.nameservers`, nameservers, `must not have more than ${MAX_NAMESERVERS} nameservers`));
  }
  nameservers.forEach((server, index) => {
    errors.push(...nameErrors(server, `${path}.nameservers[${index}]`, ipErrors));
  });
  if (searches.length > MAX_SEARCHES) {
    errors.push(invalid(`${path}.searches`, searches, `must not have more than ${MAX_SEARCHES} search paths`));
  }
  if (searches.join(' ').length > MAX_SEARCH_CHARACTERS) {
    const limit = `must not have more than ${MAX_SEARCH_CHARACTERS} characters (including spaces) in the search list`;
    errors.push(invalid(`${path}.searches`, searches, limit));
  }
  searches.forEach((search, index) => {
    if (search !== '.')
      errors.push(...nameErrors(search.replace(/\.$/, ''), `${path}.searches[${index}]`, searchErrors));
  });
  (dnsConfig?.options ?? []).forEach(({ name }, index) => {
    if (!name) errors.push(required(`${path}.options[${index}]`, 'must not be empty'));
  });
  return errors;
}

const searchLabel = '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?';
const searchPattern = `${searchLabel}(\\.${searchLabel})*`;
const searchRegexp = new RegExp(`^${searchPattern}$`);

/** A DNS search path may contain underscores, unlike other DNS names. */
function searchErrors(value: string): string[] {
  const errors = value.length > 253 ? ['must be no more than 253 characters'] : [];
  if (searchRegexp.test(value)) return errors;
  return [
    ...errors,
    `a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '${searchPattern}')`,
  ];
}

const validateHostAliases = ({ hostAliases }: PodSpec): FieldError[] =>
  (hostAliases ?? []).flatMap(({ ip, hostnames }, index) =>
    allErrors(
      nameErrors(ip ?? '', `spec.hostAliases[${index}].ip`, ipErrors),
      (hostnames ?? []).flatMap((hostname, nameIndex) =>
        nameErrors(hostname, `spec.hostAliases[${index}].hostnames[${nameIndex}]`, dns1123SubdomainErrors),
      ),
    ),
  );

function validateTokenVolumes(spec: PodSpec): FieldError[] {
  if (spec.serviceAccountName) return [];
  return (spec.volumes ?? []).flatMap((volume, index) =>
    (volume.projected?.sources ?? []).flatMap((source, sourceIndex) =>
      source.serviceAccountToken
        ? [
            forbidden(
              `spec.volumes[${index}].projected.sources[${sourceIndex}].serviceAccountToken`,
              'must not be specified when serviceAccountName is not set',
            ),
          ]
        : [],
    ),
  );
}
