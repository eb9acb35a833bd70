import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { readProblem } from '../machinery/read-problem.ts';
import { UserError } from '../platform/files.ts';
import { type HttpClient, type HttpClientOptions, httpClient } from './http-client.ts';

export interface KubeconfigContext extends HttpClientOptions {
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

interface Section {
  path: string;
  values: Record<string, unknown>;
}

/** Resolves to a client for the current context of the file. Rejects with a UserError like readKubeconfigs(). */
export const clientFromKubeconfig = async (path: string): Promise<HttpClient> => httpClient(await readKubeconfig(path));

/** Resolves to the current context of the file. Rejects like readKubeconfigs(). Source: client-go's kubeconfig v1 format. */
export const readKubeconfig = async (path: string): Promise<KubeconfigContext> =>
  contextOf([await readFileOf(path)], undefined);

/**
 * Resolves to the context named `context`, or to the current context if `context` is undefined. The first file that defines an entry wins.
 * Skips missing files if several paths are passed. Rejects with a UserError if all files are missing, if a file cannot be read or is not a
 * kubeconfig, if the context is missing or incomplete, or if its server is not an https:// address.
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
  const found = files.filter((file) => file !== undefined);
  if (found.length === 0) throw new UserError(`none of the kubeconfigs ${paths.join(', ')} exists: correct KUBECONFIG`);
  return contextOf(found, context);
}

async function contextOf(files: readonly KubeconfigFile[], name: string | undefined): Promise<KubeconfigContext> {
  const invalid = (problem: string): UserError => {
    const paths = files.map(({ path }) => path).join(':');
    return new UserError(`kubeconfig ${paths}: ${problem}`);
  };
  if (files.every(({ config }) => Object.keys(config).length === 0)) throw invalid('it is empty: give a kubeconfig');
  const current = name ?? files.map(({ config }) => config['current-context']).find(Boolean);
  const names = contextNames(files);
  if (names.length === 0) throw invalid('it has no context: give a kubeconfig with one');
  if (!names.some((each) => each === current)) {
    const problem =
      current === undefined ? 'no current-context is set' : `there is no context ${JSON.stringify(current)}`;
    throw invalid(`${problem}: give --context ${names.length === 1 ? '' : 'with one of '}${names.join(', ')}`);
  }
  const context = section(files, 'contexts', 'context', current)?.values ?? {};
  const sectionOfContext = (list: string, field: string): Section => {
    const name = context[field];
    const found = section(files, list, field, name);
    if (found !== undefined) return found;
    const problem =
      name === undefined || name === ''
        ? `names no ${field}`
        : `names the ${field} ${JSON.stringify(name)}, which is not in ${list}`;
    throw invalid(`the context ${JSON.stringify(current)} ${problem}: correct it, or give another kubeconfig`);
  };
  const cluster = sectionOfContext('clusters', 'cluster');
  const user = sectionOfContext('users', 'user');
  const readText = (path: string, field: string): Promise<string> =>
    readFile(path, 'utf8').catch((error: Error) => {
      throw invalid(`${field} cannot be read: ${error.message}`);
    });
  /**
   * Decodes `<field>-data` (base64), or reads the file that `<field>` names. Rejects with a UserError if both fields are missing or the
   * file cannot be read.
   */
  const pem = async ({ path, values }: Section, field: string): Promise<string> => {
    const data = values[`${field}-data`];
    if (typeof data === 'string') return Buffer.from(data, 'base64').toString();
    const file = values[field];
    if (typeof file !== 'string') throw invalid(`${field} is missing`);
    return readText(resolve(dirname(path), file), field);
  };
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

/**
 * Returns the field of the entry `name` in `list`, from the first file whose entry has the field; undefined if none has. File names in
 * `values` are relative to the folder of `path`.
 */
function section(files: readonly KubeconfigFile[], list: string, field: string, name: unknown): Section | undefined {
  for (const { path, config } of files) {
    const entries = Array.isArray(config[list]) ? (config[list] as (Named | null)[]) : [];
    const values = entries.find((each) => each?.name === name)?.[field];
    if (values !== undefined && values !== null) return { path, values: values as Record<string, unknown> };
  }
  return undefined;
}

const contextNames = (files: readonly KubeconfigFile[]): string[] =>
  files.flatMap(({ config: { contexts } }) =>
    (Array.isArray(contexts) ? (contexts as (Named | null)[]) : []).flatMap((each) => each?.name ?? []),
  );

async function readFileOf(path: string): Promise<KubeconfigFile> {
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    throw new UserError(`the kubeconfig ${path} ${readProblem(error)}`, { cause: error });
  });
  const config = parsed(text);
  if (config === undefined) throw new UserError(`kubeconfig ${path} is neither YAML nor JSON: give a kubeconfig`);
  const { kind } = config;
  if (typeof kind === 'string' && kind !== KIND)
    throw new UserError(`${path} is not a kubeconfig but has an object of the kind ${kind}: give a kubeconfig`);
  return { path, config };
}

/** The kind of a kubeconfig, which may also be absent. */
const KIND = 'Config';

/**
 * Parses a kubeconfig. Returns undefined if the text is invalid or not an object. As in client-go, only the first document counts, and a
 * text without a document is an empty object.
 */
function parsed(text: string): Record<string, unknown> | undefined {
  try {
    const [document] = parseAllDocuments(text);
    if (document === undefined) return {};
    const config = document.errors.length > 0 ? undefined : (document.toJS() as unknown);
    return typeof config === 'object' ? ((config ?? {}) as Record<string, unknown>) : undefined;
  } catch {
    // For example, an alias has no anchor.
    return undefined;
  }
}
