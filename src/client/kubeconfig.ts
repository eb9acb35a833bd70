/** A client from a kubeconfig file: its current context, with a client certificate. */
import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { parse } from 'yaml';
import { UserError } from '../platform/files.ts';
import type { Client } from './client.ts';
import { type HttpClientOptions, httpClient } from './http-client.ts';

interface Named {
  name?: string;
  [section: string]: unknown;
}

/** Rejects with a UserError where the file or something in it is missing. */
export const clientFromKubeconfig = async (path: string): Promise<Client> => httpClient(await readKubeconfig(path));

/** The server and the credentials of the current context. Source: client-go's kubeconfig v1 format. */
export async function readKubeconfig(path: string): Promise<HttpClientOptions> {
  const config = await parseFile(path);
  const wrong = (what: string): UserError => new UserError(`kubeconfig ${path}: ${what}`);
  const section = (list: string, field: string, name: unknown): Record<string, unknown> => {
    const entry = ((config[list] ?? []) as Named[]).find((each) => each.name === name);
    if (entry?.[field] === undefined) throw wrong(`${list} has no entry ${JSON.stringify(name)}`);
    return entry[field] as Record<string, unknown>;
  };
  const context = section('contexts', 'context', config['current-context']);
  const cluster = section('clusters', 'cluster', context['cluster']);
  const user = section('users', 'user', context['user']);
  /** From `<field>-data`, in base64, or the file that `<field>` names. */
  const pem = async (from: Record<string, unknown>, field: string): Promise<string> => {
    const data = from[`${field}-data`];
    if (typeof data === 'string') return Buffer.from(data, 'base64').toString();
    const file = from[field];
    if (typeof file !== 'string') throw wrong(`${field} is missing`);
    return readFile(resolve(dirname(path), file), 'utf8');
  };
  const { server } = cluster;
  if (typeof server !== 'string' || !server.startsWith('https://'))
    throw wrong('the server is not an https:// address');
  return {
    server,
    caPem: await pem(cluster, 'certificate-authority'),
    certPem: await pem(user, 'client-certificate'),
    keyPem: await pem(user, 'client-key'),
  };
}

async function parseFile(path: string): Promise<Record<string, unknown>> {
  const text = await readFile(path, 'utf8').catch((error: Error) => {
    throw new UserError(`kubeconfig ${path} cannot be read: ${error.message}`);
  });
  try {
    const config = parse(text) as unknown;
    if (typeof config === 'object' && config !== null) return config as Record<string, unknown>;
  } catch {
    // Said below.
  }
  throw new UserError(`kubeconfig ${path} is not YAML`);
}
