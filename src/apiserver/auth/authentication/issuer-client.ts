/**
 * Reads documents of an OIDC issuer over HTTPS. Unlike fetch() of Node.js, the client can trust an authority that the user names. Redirects
 * are not followed.
 */
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';

const MAX_DOCUMENT_BYTES = 1024 * 1024;

export interface FetchOptions {
  /** Trusted authorities in PEM; undefined for those that Node.js trusts. */
  caPem: string | undefined;
  signal?: AbortSignal;
}

/**
 * Resolves to the response, whatever its status is. Rejects if the URL is not an https URL, the issuer does not respond, or the document is
 * too long.
 */
export async function fetchFromIssuer(url: string, { caPem, signal }: FetchOptions): Promise<Response> {
  const options = { agent: false, headers: { accept: 'application/json' } };
  const outgoing = request(url, {
    ...options,
    ...(caPem === undefined ? {} : { ca: caPem }),
    ...(signal === undefined ? {} : { signal }),
  });
  outgoing.end();
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
  outgoing.on('error', () => undefined);
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_DOCUMENT_BYTES) {
      response.destroy();
      throw new Error(`${url} is longer than ${MAX_DOCUMENT_BYTES} bytes`);
    }
    chunks.push(chunk);
  }
  const status = response.statusCode ?? 0;
  return status >= 200 && status <= 599
    ? new Response(status === 204 || status === 304 ? null : Buffer.concat(chunks), { status })
    : Response.error();
}
