/** Source: NewRequestForHTTPGetAction of v1.33. */

/** Go's client sets these headers itself. They are ignored in the headers of a probe or hook. */
const OWN = new Set(['content-length', 'transfer-encoding', 'trailer']);

/** Returns alternating names and values, starting with Host. User-Agent and Accept have defaults; an empty value suppresses the header. */
export function requestHeaders(
  request: { headers: readonly { name: string; value: string }[]; userAgent: string },
  host: string,
): string[] {
  const firstValues = new Map<string, string>();
  for (const { name, value } of request.headers) {
    if (!firstValues.has(name.toLowerCase())) firstValues.set(name.toLowerCase(), value);
  }
  const named = (name: string): string | undefined => firstValues.get(name);
  const result = ['Host', named('host') || host];
  const add = (name: string, value: string): void => void (value !== '' && result.push(name, value));
  add('User-Agent', onTheWire(named('user-agent') ?? request.userAgent));
  for (const { name, value } of request.headers) {
    const lower = name.toLowerCase();
    if (lower === 'host' || lower === 'user-agent' || OWN.has(lower)) continue;
    if (lower === 'accept' && named('accept') === '') continue;
    result.push(name, onTheWire(value));
  }
  if (named('accept') === undefined) add('Accept', '*/*');
  return result;
}

/** Node.js encodes headers as Latin-1. This function makes it send UTF-8, as Go does. */
const onTheWire = (value: string): string => Buffer.from(value, 'utf8').toString('latin1');
