/** Addresses are formatted as Go's net/url does. */
import { HandlerFailure, joinHostPort } from './failure.ts';

export interface Address {
  scheme: 'http' | 'https';
  /** A host name, or an IP address without brackets. */
  hostname: string;
  port: number;
  /** The value of the Host header, unless the probe or hook specifies one. */
  host: string;
  /** The path and the query, in the form in which they are sent. */
  target: string;
  /** The URL, for messages and as the base of relative redirects. */
  url: string;
}

export function addressOf(where: { scheme: 'http' | 'https'; host: string; port: number; path: string }): Address {
  const { scheme, port } = where;
  const host = joinHostPort(where.host, port);
  const target = requestTarget(where.path.toWellFormed());
  return { scheme, hostname: where.host, port, host, target, url: `${scheme}://${host}${target}` };
}

/** A path that Go cannot parse is escaped as a whole, including its `?` and `#`, as upstream does. */
function requestTarget(path: string): string {
  const broken = /%(?![0-9a-f]{2})|[\x00-\x1f\x7f]/i.test(path);
  const escaped = broken
    ? encodeURI(path).replaceAll('?', '%3F').replaceAll('#', '%23')
    : // Drop the fragment, and the scheme and host of an absolute URL.
      encodeURI(path.replace(/#.*$/s, '').replace(/^([a-z][a-z0-9+.-]*:)?\/\/[^/?]*/i, '')).replace(
        /%25(?=[0-9a-f]{2})/gi,
        '%',
      );
  return escaped.startsWith('/') ? escaped : `/${escaped}`;
}

const REDIRECTS = new Set([301, 302, 303, 307, 308]);

/**
 * Returns the target of a redirect on the same host; undefined if the response is not a redirect, has an empty Location, or redirects to
 * another host. Throws a HandlerFailure if the Location cannot be parsed, or if it is on the same host and has a scheme other than http and
 * https.
 */
export function redirected(
  from: Address,
  status: number,
  location: string,
): { address: Address; relative: boolean } | undefined {
  if (!REDIRECTS.has(status) || location === '') return undefined;
  const base = new URL(from.url);
  if (!URL.canParse(location, from.url))
    throw new HandlerFailure(`Get "${from.url}": failed to parse Location header "${location}"`);
  const next = new URL(location, base);
  if (next.hostname !== base.hostname) return undefined;
  const scheme = next.protocol.slice(0, -1);
  if (scheme !== 'http' && scheme !== 'https')
    throw new HandlerFailure(`Get "${location}": unsupported protocol scheme "${scheme}"`);
  const address: Address = {
    scheme,
    hostname: from.hostname,
    port: next.port === '' ? (scheme === 'https' ? 443 : 80) : Number(next.port),
    host: next.host,
    target: next.pathname + next.search,
    url: `${scheme}://${next.host}${next.pathname}${next.search}`,
  };
  return { address, relative: !URL.canParse(location) && !location.startsWith('//') };
}
