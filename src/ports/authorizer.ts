import type { FieldRequirement } from '../machinery/field-selector.ts';
import type { UserInfo } from './request.ts';

/** A request for a resource. An optional string that is absent means the same as an empty one. */
export interface ResourceAttributes {
  user: UserInfo;
  /** The verb of a request, such as `get`, or another right, such as `bind` or `impersonate`. */
  verb: string;
  group: string;
  /** The plural, such as `pods`. */
  resource: string;
  subresource?: string | undefined;
  namespace?: string | undefined;
  name?: string | undefined;
  /** Some or all requirements of the field selector of a list, watch or deletecollection. Absent: there are none. */
  fieldSelector?: readonly FieldRequirement[] | undefined;
}

/** A request for a path that belongs to no resource. */
export interface PathAttributes {
  user: UserInfo;
  /** The method of the request in lower case. */
  verb: string;
  path: string;
}

export type Attributes = ResourceAttributes | PathAttributes;

export const isPath = (attributes: Attributes): attributes is PathAttributes => 'path' in attributes;

export interface Decision {
  allowed: boolean;
  /** Why the request is allowed or denied, such as the binding that allows it or the roles that could not be read; may be empty. */
  reason: string;
}

/** Source: rbac/v1 PolicyRule of v1.33. */
export interface AccessRule {
  verbs: string[];
  apiGroups?: string[];
  resources?: string[];
  resourceNames?: string[];
  nonResourceURLs?: string[];
}

export interface RulesOfUser {
  /** The rules of each role that applies to the user. */
  roles: readonly (readonly AccessRule[])[];
  /** The reasons why rules may be missing, such as bindings to roles that do not exist. */
  errors: readonly string[];
}

export interface Authorizer {
  authorize(attributes: Attributes): Promise<Decision>;
  /**
   * Resolves to all rules that apply to the user in the namespace or, if `namespace` is empty, in the cluster. As upstream, the rules do
   * not include the rights of system:masters.
   */
  rulesFor(user: UserInfo, namespace: string): Promise<RulesOfUser>;
}
