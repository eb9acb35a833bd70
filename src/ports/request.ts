/** The context of a request to the API, whether the request arrives over HTTPS or comes from a component of the same process. */
import type { KubeObject, ResourceRef } from '../machinery/meta.ts';

/** Source: authentication/v1 UserInfo of v1.33. */
export interface UserInfo {
  /** Such as `system:kube-scheduler`; `system:anonymous` for requests without authentication, such as /healthz. */
  name: string;
  uid?: string;
  groups: readonly string[];
  extra?: Readonly<Record<string, readonly string[]>>;
}

export const API_SERVER: UserInfo = { name: 'system:apiserver', groups: ['system:masters', 'system:authenticated'] };

export type Verb = 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete' | 'deletecollection';

export interface RequestContext {
  readonly user: UserInfo;
  /**
   * Whether a client sent the request over HTTPS, or a component of lifepod in the same process. Limits that protect the engine from its
   * clients do not apply to components.
   */
  readonly source: 'client' | 'component';
  readonly verb: Verb;
  readonly resource: ResourceRef;
  readonly subresource?: string | undefined;
  readonly namespace?: string | undefined;
  /** Absent for lists, watches and deletecollection, and for a create without a subresource. */
  readonly name?: string | undefined;
  /** Aborts when the sender no longer waits for the result. */
  readonly signal: AbortSignal;
  /** The annotations for the audit event of the request. All code that handles the request may add annotations. */
  readonly audit: Map<string, string>;
  /**
   * Waits for the promise without holding up other requests. `kept`: the objects that the request keeps in memory during the wait. Rejects
   * with 429 TooManyRequests if too many requests wait, and with the reason of the signal if the signal aborts. Absent for components,
   * whose requests may wait without limits.
   */
  readonly outside?: (waiting: Promise<void>, kept: readonly KubeObject[]) => Promise<void>;
}
