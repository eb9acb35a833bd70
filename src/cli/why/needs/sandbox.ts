/** Explains why the node cannot create the sandbox of a Pod. Pure. */
import type { Pod } from '../../../api/generated/types.ts';
import { fullDiskText } from '../../../runtime/full-disk.ts';
import { FREE_SPACE } from '../failed-start.ts';
import { tooLowLimit } from '../memory-limit.ts';
import type { Action } from '../subject.ts';

export interface SandboxFinding {
  /** A clause after `because`. */
  cause: string;
  actions: Action[];
  /** Whether the cause remains until the user changes the Pod. */
  isFinal: boolean;
}

/**
 * Patterns for messages. Source: src/node/container/container-config.ts; for a RuntimeClass, the API server; for a handler, containerd and
 * CRI-O.
 */
const MESSAGES: readonly [RegExp, (found: RegExpExecArray, pod: Pod) => SandboxFinding][] = [
  [
    /RuntimeClass handler ".*" does not support user namespaces/,
    () =>
      final(
        'it has hostUsers: false, and lifepod does not support user namespaces',
        'recreate the Pod without hostUsers: false',
      ),
  ],
  [
    /FQDN (\S+) is too long \((\d+) characters is the max/,
    ([, name, max]) =>
      final(
        `its host name ${name} is longer than ${max} characters`,
        'give the Pod a shorter hostname or subdomain, or omit setHostnameAsFQDN, and recreate the Pod',
      ),
  ],
  [
    /runtimeclasses\S* "([^"]+)" not found/,
    ([, name]) =>
      passing(`its RuntimeClass ${name} does not exist`, 'create the RuntimeClass, and the node retries automatically'),
  ],
  [
    /no runtime for "([^"]+)" is configured|failed to find runtime handler (\S+)/,
    ([, name, other], pod) => {
      const handler = name ?? other;
      return passing(
        `the container runtime does not have the handler ${handler} of its RuntimeClass ${pod.spec?.runtimeClassName}`,
        `start the engine with --runtime-handler ${handler}=PATH (a machine's own container runtime: configure the handler there), or recreate the Pod with another runtimeClassName`,
      );
    },
  ],
];

const finding =
  (isFinal: boolean) =>
  (cause: string, description: string): SandboxFinding => ({
    cause,
    actions: [{ description }],
    isFinal,
  });
const final = finding(true);
const passing = finding(false);

/** Explains the message about a sandbox that cannot be created; undefined if no remedy but waiting is known. */
export function sandboxFinding(pod: Pod, text: string): SandboxFinding | undefined {
  const full = fullDiskText(text);
  if (full !== undefined) return passing(full, FREE_SPACE);
  const limit = tooLowLimit(pod, undefined, text);
  if (limit !== undefined) return { ...limit, isFinal: false };
  for (const [pattern, explain] of MESSAGES) {
    const found = pattern.exec(text);
    if (found !== null) return explain(found, pod);
  }
  return undefined;
}
