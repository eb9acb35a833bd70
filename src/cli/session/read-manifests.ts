/** Reads the manifests that `lifepod up` names: files, the files of folders, and standard input. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { text as readText } from 'node:stream/consumers';
import { readProblem } from '../../machinery/read-problem.ts';
import { UserError } from '../../platform/files.ts';
import { untilAborted } from '../../platform/on-abort.ts';
import { shellQuoted } from '../../platform/programs/typed-program.ts';
import type { Hints } from '../hints.ts';
import { closedBySudo } from '../progress/standard-input.ts';
import { createErrors, type Manifest, parseManifests } from './manifests.ts';

/** The files of a folder that are manifests. Source: kubectl apply -f FOLDER. */
const MANIFEST = /\.(?:yaml|yml|json)$/;

/** Throws a UserError if one of the paths is a URL, which kubectl would read. */
export function refuseUrls(paths: readonly string[], { engine }: Pick<Hints, 'engine'>): void {
  const url = paths.find((path) => /^https?:\/\//.test(path));
  if (url === undefined) return;
  throw new UserError(
    `${url} is a URL, and lifepod reads manifests from files and from standard input: pipe it into lifepod, as in curl -fsSL ${shellQuoted(url)} | ${engine('up -')}`,
  );
}

/** Throws a UserError if some of the paths do not exist. Ignores other errors, such as a missing permission. */
export function checkPaths(paths: readonly string[]): void {
  const missing = paths.filter((path) => path !== '-' && isMissing(path));
  if (missing.length === 0) return;
  throw new UserError(
    missing.length === 1
      ? `the manifest ${missing[0]} ${closedBySudo(missing[0] ?? '', 'up -') ?? 'does not exist'}`
      : `the manifests ${missing.join(', ')} do not exist`,
  );
}

function isMissing(path: string): boolean {
  try {
    statSync(path);
    return false;
  } catch (error) {
    return ['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '');
  }
}

/** The error about files that cannot be read or are not valid. Its message has a line for each problem. */
export class UnreadManifestsError extends UserError {
  readonly others: readonly Manifest[];

  constructor(lines: readonly string[], others: readonly Manifest[]) {
    super(lines.join('\n'));
    this.others = others;
  }
}

/**
 * Resolves with the objects of all files in order; `-` means standard input. Rejects with an UnreadManifestsError if files cannot be read,
 * are not valid or are given twice, and with a UserError if there is no object. Calls `warn` about each file without an object if another
 * file has objects.
 */
export async function readManifests(
  paths: readonly string[],
  signal: AbortSignal,
  warn: (line: string) => void,
): Promise<Manifest[]> {
  if (paths.filter((path) => path === '-').length > 1)
    throw new UserError('give - only once: there is one standard input');
  const manifests: Manifest[] = [];
  const errors = createErrors();
  const seen = new Set<string>();
  const empty: string[] = [];
  const parse = (text: string, source: string): Manifest[] => {
    const found = parseManifests(text, source);
    if (found.length === 0) empty.push(source);
    return found;
  };
  const readFile = (file: string): Manifest[] =>
    errors.collect(() => {
      if (seen.has(resolve(file))) throw new UserError(`${file} is given twice: give it once`);
      seen.add(resolve(file));
      return parse(contentOf(file), file);
    });
  for (const path of paths) {
    if (path === '-') {
      const text = await standardInput(signal);
      manifests.push(...errors.collect(() => parse(text, 'standard input')));
    } else {
      manifests.push(...errors.collect(() => filesOf(path).flatMap(readFile)));
    }
  }
  if (errors.messages.length > 0) throw new UnreadManifestsError(errors.messages, manifests);
  if (manifests.length > 0) {
    for (const source of empty) warn(`warning: ${source} has no object`);
    return manifests;
  }
  const names = paths.map((path) => (path === '-' ? 'standard input' : path)).join(', ');
  throw new UserError(`no object in ${names}: give manifests with at least one object`);
}

async function standardInput(signal: AbortSignal): Promise<string> {
  const text = readText(process.stdin);
  text.catch(() => undefined);
  try {
    return await untilAborted(signal, text);
  } finally {
    // An open standard input would keep the process alive.
    process.stdin.destroy();
  }
}

function filesOf(path: string): string[] {
  const found = readable(path, () => statSync(path));
  if (!found.isDirectory()) return [path];
  const files = readable(path, () => readdirSync(path)).filter((name) => MANIFEST.test(name));
  if (files.length === 0) throw new UserError(`the folder ${path} has no file that ends in .yaml, .yml or .json`);
  return files.sort().map((name) => join(path, name));
}

const contentOf = (path: string): string => readable(path, () => readFileSync(path, 'utf8'));

function readable<T>(path: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new UserError(`the manifest ${path} ${closedBySudo(path, 'up -') ?? readProblem(error)}`);
  }
}
