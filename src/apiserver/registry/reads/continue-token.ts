/**
 * The continue token of a list: opaque to clients, with the revision of the first page and the position of the last object that was
 * examined.
 * Source: k8s.io/apiserver/pkg/storage, continue.go (behavior and wording).
 */
import { badRequest } from '../../../machinery/status.ts';

const VERSION = 'meta.k8s.io/v1';
/** The revision in a token that continues at the newest revision. The 410 error for a compacted revision contains such a token. */
export const NEWEST_REVISION = -1;

export interface ContinuePoint {
  revision: number;
  /**
   * The position of the last object that was examined, even if a selector omitted the object: its store key without the prefix of the
   * resource, such as `default/web-1`. The next page begins after this position.
   */
  after: string;
}

const invalidToken = (detail: string) => badRequest(`continue key is not valid${detail}`);

export const encodeContinue = ({ revision, after }: ContinuePoint): string =>
  Buffer.from(JSON.stringify({ v: VERSION, rv: revision, start: `${after}\0` })).toString('base64url');

/** Throws 400 BadRequest if the token is invalid. */
export function decodeContinue(token: string): ContinuePoint {
  let content: { v?: unknown; rv?: unknown; start?: unknown } | null;
  try {
    content = JSON.parse(Buffer.from(token, 'base64url').toString());
  } catch {
    throw invalidToken('');
  }
  if (content?.v !== VERSION)
    throw invalidToken(
      `: server does not recognize this encoded version ${typeof content?.v === 'string' ? content.v : ''}`,
    );
  const { rv, start } = content;
  if (typeof rv !== 'number' || !Number.isSafeInteger(rv) || rv === 0 || rv < NEWEST_REVISION) {
    throw invalidToken(`: incorrect encoded start resourceVersion (version ${VERSION})`);
  }
  if (typeof start !== 'string' || start === '') throw invalidToken(`: encoded start key empty (version ${VERSION})`);
  if (!/^[^/\0]+(\/[^/\0]+)?\0$/.test(start)) throw invalidToken(`: ${start}`);
  return { revision: rv, after: start.slice(0, -1) };
}
