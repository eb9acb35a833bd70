import { isIPv4, isIPv6 } from 'node:net';

const GROUPS = 8;

/** Returns the 4 or 16 bytes of the address; undefined if the text is not an IP address, or is one with a zone. */
export function addressBytes(text: string): number[] | undefined {
  if (isIPv4(text)) return text.split('.').map(Number);
  // An address with a zone, such as fe80::1%eth0, has a meaning only on one machine.
  if (!isIPv6(text) || text.includes('%')) return undefined;
  return groupsOf(text).flatMap((group) => [group >> 8, group & 0xff]);
}

function groupsOf(text: string): number[] {
  const [head = '', tail] = text.split('::');
  const [before, after] = [parseGroups(head), parseGroups(tail ?? '')];
  const zeros = tail === undefined ? 0 : GROUPS - before.length - after.length;
  return [...before, ...new Array<number>(zeros).fill(0), ...after];
}

/** The last group may be an IPv4 address, which counts as two groups. */
const parseGroups = (text: string): number[] =>
  text === ''
    ? []
    : text.split(':').flatMap((group) => {
        if (!group.includes('.')) return [Number.parseInt(group, 16)];
        const [a = 0, b = 0, c = 0, d = 0] = group.split('.').map(Number);
        return [a * 256 + b, c * 256 + d];
      });

/** Returns a text that is the same for all spellings of an address; undefined if the text is not an IP address. */
export const addressKey = (text: string): string | undefined =>
  isIPv4(text) ? text : addressBytes(text)?.map(hexByte).join('');

const hexByte = (byte: number): string => byte.toString(16).padStart(2, '0');

/**
 * Returns the addressKey() of the address in a reverse name; undefined if the name is incomplete. `labels`: the labels before `arpa`, first
 * label first, such as 7, 0, 0, 10, in-addr.
 */
export function reverseKey(labels: readonly string[]): string | undefined {
  const reversed = labels.slice(0, -1).reverse();
  const family = labels.at(-1);
  if (family === 'in-addr') {
    const text = reversed.join('.');
    return reversed.length === 4 && isIPv4(text) ? text : undefined;
  }
  const isComplete = family === 'ip6' && reversed.length === 32 && reversed.every((label) => /^[0-9a-f]$/.test(label));
  return isComplete ? reversed.join('') : undefined;
}

/** Returns the first label of the name of an endpoint, such as 10-0-0-7 for an endpoint without a host name. Source: CoreDNS. */
export const endpointLabel = (ip: string, hostname: string): string =>
  hostname === '' ? ip.replace(/[.:]/g, '-') : hostname;
