/**
 * Determines parts of an audit event from the headers and the connection of a request. Clients choose the headers, so their values cannot
 * be trusted.
 * Source: k8s.io/apimachinery/pkg/util/net (SourceIPs) and k8s.io/apiserver/pkg/audit and pkg/endpoints/filters of v1.33 (behavior and
 * wording).
 */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { canonicalIp } from '../../machinery/ip.ts';
import { tlsConnectionOf } from '../http/http2/stream-connection.ts';

const MAX_ID_CHARS = 64;
const CLIENT_ID = new RegExp(`^[\\x21-\\x7e]{1,${MAX_ID_CHARS}}$`);
const MAX_USER_AGENT_BYTES = 1024;

/**
 * Returns the value of the header Audit-ID if it has at most MAX_ID_CHARS printable ASCII characters without spaces, otherwise a new UUID.
 */
export function auditIdOf({ headers }: Pick<IncomingMessage, 'headers'>): string {
  const given = headers['audit-id'];
  return typeof given === 'string' && CLIENT_ID.test(given) ? given : randomUUID();
}

/** Node.js decodes the values of headers as Latin-1. Decodes `value` as UTF-8 instead, and replaces invalid bytes. */
export const headerText = (value: string): string => Buffer.from(value, 'latin1').toString('utf8');

export function userAgentOf({ headers }: Pick<IncomingMessage, 'headers'>): string | undefined {
  const bytes = Buffer.from(headers['user-agent'] ?? '', 'latin1');
  if (bytes.length === 0) return undefined;
  if (bytes.length <= MAX_USER_AGENT_BYTES) return bytes.toString('utf8');
  return `${bytes.toString('utf8', 0, MAX_USER_AGENT_BYTES)}...TRUNCATED`;
}

/** Like Go, shows an IPv4 address that is mapped to IPv6 as IPv4. */
const addressOf = (text: string): string | undefined =>
  canonicalIp(
    text
      .trim()
      .replace(/^::ffff:(?=\d+\.)/i, '')
      .replace(/%.*$/, ''),
  );

/**
 * Returns the addresses of the client and of the proxies between the client and the server: the addresses in X-Forwarded-For, then the
 * address in X-Real-Ip unless it is one of them, then the address of the connection unless it is the last one. Omits invalid addresses.
 */
export function sourceIpsOf({ headers, socket }: Pick<IncomingMessage, 'headers' | 'socket'>): string[] {
  const ips = headerOf(headers['x-forwarded-for'])
    .split(',')
    .flatMap((each) => addressOf(each) ?? []);
  const real = addressOf(headerOf(headers['x-real-ip']));
  if (real !== undefined && !ips.includes(real)) ips.push(real);
  const remote = addressOf(socket.remoteAddress ?? '');
  if (remote !== undefined && ips.at(-1) !== remote) ips.push(remote);
  return ips;
}

const headerOf = (value: string | string[] | undefined): string =>
  Array.isArray(value) ? value.join(',') : (value ?? '');

/** Returns the message for the audit event, which names the kinds of credentials in the request. */
export function failedAuthentication({ headers, url = '', socket }: IncomingMessage): string {
  const [scheme = '', value] = (headers.authorization ?? '').trim().split(' ');
  const kind = value === undefined ? '' : scheme.toLowerCase();
  const hasCertificate = Object.keys(tlsConnectionOf(socket).getPeerCertificate?.() ?? {}).length > 0;
  const attempted = [
    ...(kind === 'basic' || kind === 'bearer' ? [kind] : []),
    ...(/[?&]access_token=[^&]/.test(url) ? ['access_token'] : []),
    ...(hasCertificate ? ['x509'] : []),
  ];
  if (attempted.length === 0) return 'Authentication failed, no credentials provided';
  return `Authentication failed, attempted: ${attempted.join(', ')}`;
}
