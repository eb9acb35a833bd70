/** Reads the server, its CA, the credentials of the user, and the namespace of a context from kubeconfig files. */
import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { parse } from 'yaml';
import { UserError } from '../platform/files.ts';
import { type HttpClient, type HttpClientOptions, httpClient } from './http-client.ts';

export interface KubeconfigContext extends HttpClientOptions {
  /** Absent if the context sets no namespace. */
  namespace?: string;
}

interface Named {
  name?: string;
  [section: string]: unknown;
}

interface KubeconfigFile {
  path: string;
  config: Record<string, unknown>;
}

/** Messages by the error code of a file that cannot be read. */
const PROBLEMS: Readonly<Record<string, string>> = {
  ENOENT: 'does not exist',
  ENOTDIR: 'does not exist',
  EISDIR: 'is a folder',
  EACCES: 'cannot be read: permission denied',
};

/** Returns a client for the current context of the file. Rejects with a UserError like readKubeconfigs(). */
export const clientFromKubeconfig = async (path: string): Promise<HttpClient> => httpClient(await readKubeconfig(path));

/** Returns the current context of the file. Rejects like readKubeconfigs(). Source: client-go's kubeconfig v1 format. */
export const readKubeconfig = async (path: string): Promise<KubeconfigContext> =>
  contextOf([await readFileOf(path)], undefined);

/**
 * Returns the context named `context`, or the current context if `context` is undefined. The files are merged: the first
 * file that defines an entry wins. Missing files are skipped if several paths are given. Rejects with a UserError if a
 * file cannot be read or parsed, if the result is incomplete, or if its server is not an https:// address.
 * Source: how client-go merges the files in KUBECONFIG.
 */
export async function readKubeconfigs(paths: readonly string[], context?: string): Promise<KubeconfigContext> {
  const files = await Promise.all(
    paths.map((path) =>
      readFileOf(path).catch((error: NodeJS.ErrnoException) => {
        if ((error.cause as NodeJS.ErrnoException | undefined)?.code === 'ENOENT' && paths.length > 1) return undefined;
        throw error;
      }),
    ),
  );
  return contextOf(
    files.filter((file) => file !== undefined),
    context,
  );
}

async function contextOf(files: readonly KubeconfigFile[], name: string | undefined): Promise<KubeconfigContext> {
  const invalid = (problem: string): UserError => {
    const paths = files.map(({ path }) => path).join(':');
    return new UserError(`kubeconfig ${paths}: ${problem}`);
  };
  /**
   * Returns the field `field` of the entry `name` in `list`, from the first file whose entry has the field, as `values`. `path` is this
   * file; file names in `values` are relative to the folder of the file. Throws a UserError if no file has such an entry.
   */
  const section = (list: string, field: string, name: unknown): { path: string; values: Record<string, unknown> } => {
    for (const { path, config } of files) {
      const entries = Array.isArray(config[list]) ? (config[list] as (Named | null)[]) : [];
      const values = entries.find((each) => each?.name === name)?.[field];
      if (values !== undefined && values !== null) return { path, values: values as Record<string, unknown> };
    }
    throw invalid(`${list} has no entry ${JSON.stringify(name)}`);
  };
  const current = name ?? files.map(({ config }) => config['current-context']).find(Boolean);
  const { values: context } = section('contexts', 'context', current);
  const cluster = section('clusters', 'cluster', context['cluster']);
  const user = section('users', 'user', context['user']);
  const readText = (path: string, field: string): Promise<string> =>
    readFile(path, 'utf8').catch((error: Error) => {
      throw invalid(`${field} cannot be read: ${error.message}`);
    });
  /** Decodes `<field>-data` (base64), or reads the file that `<field>` names. */
  const pem = async ({ path, values }: typeof user, field: string): Promise<string> => {
    const data = values[`${field}-data`];
    if (typeof data === 'string') return Buffer.from(data, 'base64').toString();
    const file = values[field];
    if (typeof file !== 'string') throw invalid(`${field} is missing`);
    return readText(resolve(dirname(path), file), field);
  };
  /** Returns the token if there is one, and the certificate. Only one of them may be missing. */
  const credentials = async (): Promise<Pick<KubeconfigContext, 'token' | 'certPem' | 'keyPem'>> => {
    const { path, values } = user;
    const { token: inline, tokenFile } = values;
    const token =
      typeof tokenFile === 'string' ? await readText(resolve(dirname(path), tokenFile), 'tokenFile') : inline;
    const hasToken = typeof token === 'string' && token !== '';
    const given = hasToken ? { token: token.trim() } : {};
    if (hasToken && !('client-certificate' in values) && !('client-certificate-data' in values)) return given;
    return { ...given, certPem: await pem(user, 'client-certificate'), keyPem: await pem(user, 'client-key') };
  };
  const { server } = cluster.values;
  if (typeof server !== 'string' || !server.startsWith('https://'))
    throw invalid('the server is not an https:// address');
  const { namespace } = context;
  return {
    server,
    caPem: await pem(cluster, 'certificate-authority'),
    ...(await credentials()),
    ...(typeof namespace === 'string' && namespace !== '' ? { namespace } : {}),
  };
}

async function readFileOf(path: string): Promise<KubeconfigFile> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    const problem = PROBLEMS[error.code ?? ''] ?? `cannot be read: ${error.message}`;
    throw new UserError(`the kubeconfig ${path} ${problem}`, { cause: error });
  });
  try {
    const config = parse(text) as unknown;
    if (typeof config === 'object' && config !== null) return { path, config: config as Record<string, unknown> };
  } catch {
    // Invalid YAML causes the same error as YAML that is not an object.
  }
  throw new UserError(`kubeconfig ${path} is not YAML`);
}
