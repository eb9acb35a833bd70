/**
 * Logs in to an OpenID Connect issuer by the authorization code flow, as a browser and an application would.
 *
 * `node oidc-login.ts URL CLIENT ACCOUNT CA_FILE` is a credential plugin of kubectl: it prints the ID token.
 */
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { text } from 'node:stream/consumers';

/** Where the issuer sends the browser with the code. No server listens there. */
export const REDIRECT_URI = 'http://127.0.0.1/callback';
export const CLIENT_SECRET = 'a-secret-that-the-issuer-of-the-tests-shares-with-its-clients';

export interface Login {
  issuer: string;
  clientId: string;
  /** The issuer accepts any name, without a password. */
  account: string;
  /** The authority of the issuer's certificate, in PEM. */
  caPem: string;
}

interface Answer {
  status: number;
  location: string;
  cookies: string[];
  body: string;
}

const base64Url = (bytes: Buffer): string => bytes.toString('base64url');

async function send(
  url: URL,
  { caPem }: Login,
  headers: Record<string, string>,
  form?: URLSearchParams,
): Promise<Answer> {
  const type = form === undefined ? {} : { 'content-type': 'application/x-www-form-urlencoded' };
  const outgoing = request(url, {
    ca: caPem,
    agent: false,
    method: form === undefined ? 'GET' : 'POST',
    headers: { ...headers, ...type },
  });
  outgoing.end(form?.toString());
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
  const { location = '', 'set-cookie': cookies = [] } = response.headers;
  return { status: response.statusCode ?? 0, location, cookies, body: await text(response) };
}

/** Follows the redirects of the issuer, and resolves with the code in the last one. Rejects if a response is not a redirect. */
async function authorize(login: Login, verifier: string): Promise<string> {
  const challenge = base64Url(createHash('sha256').update(verifier).digest());
  const query = new URLSearchParams({
    client_id: login.clientId,
    response_type: 'code',
    scope: 'openid',
    redirect_uri: REDIRECT_URI,
    login_hint: login.account,
    code_challenge: challenge,
    code_challenge_method: 'S256',
  });
  const jar = new Map<string, string>();
  let url = new URL(`${login.issuer}/auth?${query}`);
  while (!url.href.startsWith(REDIRECT_URI)) {
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ');
    const { status, location, cookies, body } = await send(url, login, { cookie });
    if (location === '') throw new Error(`${url} responded with ${status}: ${body}`);
    for (const set of cookies) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(set) ?? [];
      jar.set(name, value);
    }
    url = new URL(location, url);
  }
  const code = url.searchParams.get('code');
  if (code === null) throw new Error(`the issuer refuses the login: ${url.searchParams}`);
  return code;
}

/** Resolves with an ID token. Rejects if the issuer gives no token. */
export async function logIn(login: Login): Promise<string> {
  const verifier = base64Url(randomBytes(32));
  const form = new URLSearchParams({
    grant_type: 'authorization_code',
    code: await authorize(login, verifier),
    redirect_uri: REDIRECT_URI,
    code_verifier: verifier,
  });
  const basic = Buffer.from(`${login.clientId}:${CLIENT_SECRET}`).toString('base64');
  const { status, body } = await send(
    new URL(`${login.issuer}/token`),
    login,
    { authorization: `Basic ${basic}` },
    form,
  );
  if (status !== 200) throw new Error(`the issuer gives no token: ${status} ${body}`);
  return (JSON.parse(body) as { id_token: string }).id_token;
}

if (import.meta.main) {
  const [issuer = '', clientId = '', account = '', caFile = ''] = process.argv.slice(2);
  const token = await logIn({ issuer, clientId, account, caPem: readFileSync(caFile, 'utf8') });
  const apiVersion = 'client.authentication.k8s.io/v1';
  console.log(JSON.stringify({ apiVersion, kind: 'ExecCredential', status: { token } }));
}
