/**
 * The property of the fuzz test of access: the engine decides like the oracle, and a response to an unauthorized request does not reveal
 * whether an object exists.
 */
import fc from 'fast-check';
import { type HostilePath, hostilePath } from './hostile-paths.ts';
import { hostileSender, type Sender } from './hostile-senders.ts';
import { impersonated, isAllowed, type Right, rightFor, segmentsOf } from './oracle.ts';
import { ABSENT, ABSENT_NAMESPACE, CANARY, HIDDEN, PLANTED, type Planted } from './planted.ts';
import { type Address, type RawRequest, type RawResponse, sendRaw } from './raw-request.ts';

export interface Fuzzed extends Planted {
  /** An existing node, to which some of the paths lead. */
  node?: string;
  /** `certificate` is a key of CERTIFICATES, or 'none'. */
  addressOf(certificate: string): Address;
  /** Returns whether upstream also sends this response with a code of 500 or higher. Absent: all such responses are failures. */
  isUpstreams?(response: RawResponse): boolean;
  /** Returns a number that changes with each write; absent if other components write, too. */
  revision?(): number;
}

type Expected = { code: 400 | 401 | 403 } | { right: Right } | 'open';

const OPEN = ['healthz', 'livez', 'readyz'];
/** With a target that is longer than this, the head of the request may exceed the server's limit. */
const LONG = 12_000;

/** Returns an error code, 'open' if anyone may send the request, or the right that allows the request. */
function expectedOf(access: Planted['access'], sender: Sender, method: string, target: string): Expected {
  const [path = ''] = target.split('?');
  const segments = segmentsOf(path);
  const right = rightFor(method, target);
  if (segments === undefined || right === undefined) return { code: 400 };
  const [root = ''] = segments;
  const isOpen = OPEN.includes(root) || (root === 'version' && segments.length === 1);
  if (sender.user === undefined) return isOpen && !sender.hasCredentials ? 'open' : { code: 401 };
  if (isOpen) return 'open';
  const user = impersonated(access, sender.user, sender.impersonation);
  if (user === 'bad') return { code: 400 };
  if (user === 'forbidden') return { code: 403 };
  return isAllowed(access, user, right) ? { right } : { code: 403 };
}

const withoutPlanted = (text: string): string => text.replaceAll(PLANTED, ABSENT).replaceAll(HIDDEN, ABSENT_NAMESPACE);

function problemOf(expected: Expected, { code, body, head }: RawResponse, isUpstreams = false): string | undefined {
  const found = [...`${head.join('\n')}\n${body}`.matchAll(CANARY)].map(([, namespace, resource]) => ({
    namespace,
    resource,
  }));
  if (code >= 500 && !isUpstreams) return `the code ${code}`;
  if (expected === 'open') return found.length > 0 ? 'a canary' : undefined;
  if ('code' in expected) {
    if (found.length > 0) return 'a canary in the response to an unauthorized request';
    return code === expected.code ? undefined : `the code ${code} instead of ${expected.code}`;
  }
  const { right } = expected;
  if (code === 401 || (code === 403 && /User .* cannot /.test(body))) return `the code ${code} although it is allowed`;
  if (code === 0) return 'no response';
  const isRequested = ({ namespace = '', resource = '' }): boolean =>
    'resource' in right && right.resource === resource && ['', namespace].includes(right.namespace);
  return found.every(isRequested) ? undefined : 'a canary of another object than the requested one';
}

const BODIES = [
  '',
  '',
  '{}',
  '{"metadata":{"name":"made"}}',
  '{"metadata":{"name":"made","namespace":"default"}}',
  '[',
  'x: y',
];

/** Rejects if the property fails. Resolves to the number of responses by status code. */
export async function checkAccess(
  fuzzed: Fuzzed,
  { numRuns, seed }: { numRuns: number; seed: number },
): Promise<ReadonlyMap<number, number>> {
  const codes = new Map<number, number>();
  const send = async (sender: Sender, request: RawRequest): Promise<RawResponse> => {
    const response = await sendRaw(fuzzed.addressOf(sender.certificate), request);
    codes.set(response.code, (codes.get(response.code) ?? 0) + 1);
    return response;
  };
  const check = async (sender: Sender, { method, target: generated }: HostilePath, body: string) => {
    const target = generated.replace('fuzz-node', fuzzed.node ?? 'fuzz-node');
    const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
    const request = { method, target, headers: [...sender.headers, ['Content-Type', type] as const], body };
    const expected = expectedOf(fuzzed.access, sender, method, target);
    const before = fuzzed.revision?.();
    const response = await send(sender, request);
    const describe = (problem: string): string =>
      `${problem}: ${sender.certificate} ${JSON.stringify(request)} got ${JSON.stringify(response).slice(0, 2000)}, expected ${JSON.stringify(expected)}`;
    if (target.length > LONG && response.code === 431) return;
    const problem = problemOf(expected, response, fuzzed.isUpstreams?.(response));
    if (problem !== undefined) throw new Error(describe(problem));
    if (expected === 'open' || !('code' in expected)) return;
    if (fuzzed.revision?.() !== before) throw new Error(describe('an unauthorized request has changed something'));
    const other = withoutPlanted(target);
    const ofOther = expectedOf(fuzzed.access, sender, method, other);
    if (other === target || ofOther === 'open' || !('code' in ofOther)) return;
    const absent = await send(sender, { ...request, target: other });
    const [shown, shownAbsent] = [response, absent].map((each) => withoutPlanted(JSON.stringify(each)));
    if (shown !== shownAbsent) throw new Error(describe(`another response for an absent object, ${shownAbsent}`));
  };
  await fc.assert(fc.asyncProperty(hostileSender(fuzzed), hostilePath, fc.constantFrom(...BODIES), check), {
    numRuns,
    seed,
    endOnFailure: true,
  });
  return codes;
}
