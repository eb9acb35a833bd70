/**
 * A client of the API as in a Pod: `in-cluster-client.ts URL…` sends a GET request to each URL with the mounted token and CA certificate,
 * and prints a Reached as a line of JSON. A URL without a path leads to the Pods of the namespace `default`. `env` stands for the URL in
 * the environment variables of the Service `kubernetes`. The variables CREDENTIALS and SERVER_NAME replace the folder of the credentials
 * and the name that the certificate must have.
 */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { join } from 'node:path';

/** The HTTP status code and the kind of the returned object, or the code of the error. */
export interface Reached {
  status?: number;
  kind?: string;
  error?: string;
}

const { CREDENTIALS, SERVER_NAME, KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT_HTTPS: port } = process.env;
const folder = CREDENTIALS ?? '/var/run/secrets/kubernetes.io/serviceaccount';
const read = (name: string): string => readFileSync(join(folder, name), 'utf8').trim();

async function reach(url: string): Promise<Reached> {
  const { pathname } = new URL(url);
  const outgoing = request(new URL(pathname === '/' ? '/api/v1/namespaces/default/pods' : pathname, url), {
    ca: read('ca.crt'),
    headers: { authorization: `Bearer ${read('token')}` },
    timeout: 5000,
    agent: false,
    ...(SERVER_NAME === undefined ? {} : { servername: SERVER_NAME }),
  });
  outgoing.on('timeout', () => outgoing.destroy(Object.assign(new Error('no response'), { code: 'timeout' })));
  try {
    outgoing.end();
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
    const { kind } = JSON.parse(await new Response(response as never).text()) as { kind: string };
    return { status: response.statusCode ?? 0, kind };
  } catch (error) {
    return { error: (error as NodeJS.ErrnoException).code ?? String(error) };
  }
}

const urls = process.argv.slice(2).map((each) => (each === 'env' ? `https://${host}:${port}` : each));
for (const reached of await Promise.all(urls.map(reach))) console.log(JSON.stringify(reached));
