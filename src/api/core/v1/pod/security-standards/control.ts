/**
 * The building blocks of the controls of the Pod Security Standards.
 * Source: k8s.io/pod-security-admission/policy of v1.33 (behavior and wording).
 */
import type { PodSecurityContext, PodSpec, SecurityContext } from '../../../../generated/types.ts';
import type { AnyContainer } from '../containers.ts';

export interface Violation {
  /** Such as `privileged`. */
  reason: string;
  /** Such as `container "app" must not set securityContext.privileged=true`. */
  detail: string;
}

export interface EvaluatedPod {
  annotations: Readonly<Record<string, string>>;
  spec: PodSpec;
  /** The containers of all lists, including defer containers. Messages call each of them a container. */
  containers: readonly AnyContainer[];
}

export type Check = (pod: EvaluatedPod) => Violation | undefined;

export interface Control {
  /** Upstream's name of the control. Violations are listed in the order of these names. */
  id: string;
  /** Oldest first. */
  versions: readonly ControlVersion[];
}

export interface ControlVersion {
  /** The minor version of v1 with which the check begins. */
  since: number;
  check: Check;
  /** The id of a control of the lower level that this check includes, so that its violations are not reported twice. */
  replaces?: string;
}

export const quoted = (items: readonly string[]): string => `"${items.join('", "')}"`;

export const plural = (count: number, one: string, many: string): string => (count === 1 ? one : many);

export const sortedOnce = (values: readonly string[]): string[] => [...new Set(values)].sort();

const containersText = (names: readonly string[]): string =>
  `${plural(names.length, 'container', 'containers')} ${quoted(names)}`;

/** Returns the forbidden values in a part of a Pod; an empty list if the part is allowed. */
type Find<T> = (part: T) => readonly string[];

interface Found {
  names: string[];
  /** Without duplicates, sorted. */
  values: string[];
}

function inContainers(containers: readonly AnyContainer[], find: Find<AnyContainer>): Found {
  const names: string[] = [];
  const values: string[] = [];
  for (const container of containers) {
    const forbidden = find(container);
    if (forbidden.length === 0) continue;
    names.push(container.name);
    values.push(...forbidden);
  }
  return { names, values: sortedOnce(values) };
}

/** Forbids the values that `find` returns for a container. `text` describes the forbidden values of `count` containers. */
export const forbidInContainers =
  (reason: string, find: Find<AnyContainer>, text: (values: readonly string[], count: number) => string): Check =>
  ({ containers }) => {
    const { names, values } = inContainers(containers, find);
    return names.length === 0
      ? undefined
      : { reason, detail: `${containersText(names)} ${text(values, names.length)}` };
  };

export type AnySecurityContext = PodSecurityContext & SecurityContext;

export interface Setters {
  /** `pod`, and a text with the names of the containers, such as `containers "a", "b"`. */
  who: string[];
  /** Without duplicates, sorted. */
  values: string[];
}

export function settersOf({ spec, containers }: EvaluatedPod, find: Find<AnySecurityContext>): Setters {
  const ofPod = find(spec.securityContext ?? {});
  const { names, values } = inContainers(containers, ({ securityContext = {} }) => find(securityContext));
  return {
    who: [...(ofPod.length === 0 ? [] : ['pod']), ...(names.length === 0 ? [] : [containersText(names)])],
    values: sortedOnce([...ofPod, ...values]),
  };
}

/** Forbids the values that `find` returns for the security context of the Pod or of a container. `text` describes the forbidden values. */
export const forbidInContexts =
  (reason: string, find: Find<AnySecurityContext>, text: (values: readonly string[]) => string): Check =>
  (pod) => {
    const { who, values } = settersOf(pod, find);
    return who.length === 0 ? undefined : { reason, detail: `${who.join(' and ')} ${text(values)}` };
  };

/**
 * Requires a setting in the security context of the Pod or of each container. `isSet`: whether a context has the setting. `forbids`: the
 * check of the values of the setting; its violation is returned instead of the missing setting.
 */
export const requireInContexts =
  (reason: string, isSet: (context: AnySecurityContext) => boolean, required: string, forbids: Check): Check =>
  (pod) => {
    const forbidden = forbids(pod);
    if (forbidden !== undefined || isSet(pod.spec.securityContext ?? {})) return forbidden;
    const { names } = inContainers(pod.containers, ({ securityContext = {} }) =>
      isSet(securityContext) ? [] : ['unset'],
    );
    return names.length === 0 ? undefined : { reason, detail: `pod or ${containersText(names)} must set ${required}` };
  };

export const violationBy = (reason: string, items: readonly string[], detail: string): Violation | undefined =>
  items.length === 0 ? undefined : { reason, detail };
