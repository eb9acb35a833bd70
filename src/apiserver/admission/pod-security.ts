/**
 * Applies the Pod Security Standards that the labels of the Namespace name. No user, namespace or runtime class is exempt.
 *
 * Invariants:
 *  1. No Pod is stored that violates the level that its Namespace enforces at the time of the write: the write fails unless the Pod was
 *     evaluated in the current state of the Namespace.
 *  2. In a Namespace without these labels, no Pod is evaluated.
 *
 * Source: the plugin PodSecurity of v1.33 (behavior and wording).
 */

import { violationsOf, violationsText } from '../../api/core/v1/pod/security-standards/evaluate.ts';
import { warningsAboutPods } from '../../api/core/v1/pod/security-standards/existing-pods.ts';
import {
  levelText,
  type Mode,
  mayForbidMore,
  type NamespacePolicy,
  PREFIX,
  policyOf,
} from '../../api/core/v1/pod/security-standards/policy.ts';
import { isSignificantUpdate } from '../../api/core/v1/pod/security-standards/significant-update.ts';
import { expandedTemplate } from '../../api/core/v1/pod-template/template.ts';
import type { Namespace, Pod, PodTemplateSpec } from '../../api/generated/types.ts';
import { NAMESPACES, PODS } from '../../api/resources.ts';
import { type FieldError, listErrors } from '../../machinery/field-error.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import { forbidden, invalidObject } from '../../machinery/status.ts';
import { runInTurns, workInTurns } from '../../platform/work-in-turns.ts';
import { objectKey, resourcePrefix } from '../cache/keys.ts';
import { revisionOf } from '../cache/stored-object.ts';
import type { AdmissionRequest, AdmissionServices, AdmissionTarget, PluginFactory } from './plugin.ts';
import { isKindOf, on } from './targets.ts';

const NAMESPACES_PREFIX = resourcePrefix('', 'namespaces');
const PODS_PREFIX = resourcePrefix('', 'pods');

/** The time limit for evaluating the existing Pods of a Namespace. */
const MAX_MILLIS = 1000;

/** The subresources whose writes change no container. */
const IGNORED: ReadonlySet<string> = new Set(['status', 'defer']);

const TEMPLATES: ReadonlySet<string> = new Set([
  '/podtemplates',
  '/replicationcontrollers',
  'apps/daemonsets',
  'apps/deployments',
  'apps/replicasets',
  'apps/statefulsets',
  'batch/cronjobs',
  'batch/jobs',
]);

const isNamespace = on(NAMESPACES, 'CREATE', 'UPDATE');
const isNewPod = on(PODS, 'CREATE');
const isPodUpdate = ({ kind, subresource, operation }: AdmissionTarget): boolean =>
  operation === 'UPDATE' && isKindOf(kind, PODS) && !IGNORED.has(subresource);
const hasTemplate = ({ kind, subresource, operation }: AdmissionTarget): boolean =>
  operation !== 'DELETE' && subresource === '' && TEMPLATES.has(`${kind.group}/${kind.plural}`);

function templateOf(object: KubeObject): PodTemplateSpec | undefined {
  interface WithTemplate extends KubeObject {
    template?: PodTemplateSpec;
    spec?: { template?: PodTemplateSpec; jobTemplate?: { spec?: { template?: PodTemplateSpec } } };
  }
  const { template, spec } = object as WithTemplate;
  return template ?? spec?.template ?? spec?.jobTemplate?.spec?.template;
}

interface Labeled {
  policy: NamespacePolicy;
  errors: FieldError[];
}

export const podSecurity: PluginFactory = (services) => {
  const keyOf = ({ namespace }: AdmissionRequest): string => objectKey(NAMESPACES_PREFIX, undefined, namespace);
  const namespaceOf = (request: AdmissionRequest): KubeObject | undefined => services.cache.get(keyOf(request));
  /** The state of the Namespace at the evaluation of each Pod or template. */
  const evaluatedIn = new WeakMap<KubeObject, KubeObject>();
  return {
    name: 'PodSecurity',
    handles: (target) => isNamespace(target) || isNewPod(target) || isPodUpdate(target) || hasTemplate(target),
    validate(request) {
      if (isNamespace(request)) return validateNamespace(services, request);
      const namespace = namespaceOf(request);
      if (namespace !== undefined) evaluatedIn.set(request.object as Pod, namespace);
      const labeled = policyOf(namespace?.metadata.labels);
      return hasTemplate(request) ? validateTemplate(request, labeled) : validatePod(request, labeled);
    },
    alongside(request) {
      if (!(isNewPod(request) || isPodUpdate(request)) || !mayViolate(request)) return [];
      const namespace = namespaceOf(request);
      if (namespace === undefined) return [];
      if (namespace !== evaluatedIn.get(request.object as Pod)) {
        const { policy } = policyOf(namespace.metadata.labels);
        refuse(request, evaluated(policy, request.object as Pod)('enforce'));
      }
      return [{ key: keyOf(request), modRevision: revisionOf(namespace) }];
    },
  };
};

const mayViolate = ({ object, old }: AdmissionRequest): boolean =>
  old === undefined || isSignificantUpdate(object as Pod, old as Pod);

const isPrivileged = ({ policy, errors }: Labeled, ...modes: Mode[]): boolean =>
  errors.length === 0 && modes.every((mode) => policy[mode].level === 'privileged');

function validatePod(request: AdmissionRequest, labeled: Labeled): void {
  const { context } = request;
  if (isPrivileged(labeled, 'enforce', 'audit', 'warn')) {
    context.audit.set(`${PREFIX}enforce-policy`, 'privileged:latest');
    return;
  }
  if (!mayViolate(request)) return;
  const violated = evaluated(labeled.policy, request.object as Pod);
  context.audit.set(`${PREFIX}enforce-policy`, levelText(labeled.policy.enforce));
  annotate(request, labeled, violated('audit'));
  refuse(request, violated('enforce'));
  warnOf(request, violated('warn'));
}

/** Never rejects a template: its Pods are rejected instead. */
function validateTemplate(request: AdmissionRequest, labeled: Labeled): void {
  if (isPrivileged(labeled, 'audit', 'warn')) return;
  const template = templateOf(request.object as KubeObject);
  if (template === undefined) return;
  const violated = evaluated(labeled.policy, expandedTemplate(template));
  annotate(request, labeled, violated('audit'));
  warnOf(request, violated('warn'));
}

/**
 * Returns a function that describes how the Pod violates the level of a mode, such as `PodSecurity "baseline:latest": …`, or returns
 * undefined. Modes with the same level share one evaluation.
 */
function evaluated(policy: NamespacePolicy, pod: Pod): (mode: Mode) => string | undefined {
  const details = new Map<string, string>();
  return (mode) => {
    const level = levelText(policy[mode]);
    const detail = details.get(level) ?? violationsText(violationsOf(policy[mode], pod));
    details.set(level, detail);
    return detail === '' ? undefined : `PodSecurity ${JSON.stringify(level)}: ${detail}`;
  };
}

function refuse({ groupResource, name }: AdmissionRequest, violation: string | undefined): void {
  if (violation !== undefined) throw forbidden(groupResource, name, `violates ${violation}`);
}

function annotate({ context }: AdmissionRequest, { errors }: Labeled, violation: string | undefined): void {
  if (errors.length > 0) context.audit.set(`${PREFIX}error`, `Failed to parse policy: ${listErrors(errors).text}`);
  if (violation !== undefined) context.audit.set(`${PREFIX}audit-violations`, `would violate ${violation}`);
}

function warnOf({ warn }: AdmissionRequest, violation: string | undefined): void {
  if (violation !== undefined) warn(`would violate ${violation}`);
}

function validateNamespace(services: AdmissionServices, request: AdmissionRequest): Promise<void> | undefined {
  const { kind, name, object, old } = request;
  const { policy, errors } = policyOf((object as Namespace).metadata.labels);
  const before = policyOf(old?.metadata.labels);
  // An update may keep invalid labels.
  if (errors.length > 0 && listErrors(errors).text !== listErrors(before.errors).text)
    throw invalidObject(kind, name, errors);
  const isStricter = old !== undefined && mayForbidMore(policy.enforce, before.policy.enforce);
  return isStricter ? warnOfPods(services, request, policy) : undefined;
}

async function warnOfPods(
  { cache, timers }: AdmissionServices,
  { name, warn }: AdmissionRequest,
  { enforce }: NamespacePolicy,
): Promise<void> {
  const pods = cache.list(PODS_PREFIX, name) as Pod[];
  const end = timers.now() + MAX_MILLIS;
  const steps = warningsAboutPods(name, enforce, pods, () => timers.now() >= end);
  for (const warning of await runInTurns(steps, workInTurns())) warn(warning);
}
