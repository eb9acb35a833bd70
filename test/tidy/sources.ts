import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export const REPOSITORY = join(import.meta.dirname, '../..');

/** Includes untracked files, except those that git ignores. */
export const files: readonly string[] = execFileSync(
  'git',
  ['ls-files', '--cached', '--others', '--exclude-standard'],
  { cwd: REPOSITORY, encoding: 'utf8' },
)
  .split('\n')
  .filter((path) => path !== '' && existsSync(join(REPOSITORY, path)));

export const read = (path: string): string => readFileSync(join(REPOSITORY, path), 'utf8');

export const typeScript = files.filter((path) => path.endsWith('.ts'));

/** Ignores imports in comments. */
export function importsOf(source: string): string[] {
  const code = source.replace(/\/\*[\s\S]*?\*\//g, '').replace(/^\s*\/\/.*$/gm, '');
  const statements = /(?:^|[;\s])(?:import|export)\s(?:[^'";]*?\sfrom\s)?\s*'([^']+)'|import\(\s*'([^']+)'\s*\)/g;
  return [...code.matchAll(statements)].map((match) => match[1] ?? match[2] ?? '');
}

/** Matches a string literal on one line; the second group is its text. */
const TEXT = String.raw`(['"\`])((?:\\.|(?!\1)[^\n\\])*)\1`;
/** Match the first argument of test(), it() or describe(), and the title of a row in a table of tests. */
const TITLES = [
  String.raw`\b(?:it|test|describe)(?:\.concurrent)?\(\s*${TEXT}`,
  String.raw`[\])]\(\s*${TEXT},\s`,
  String.raw`\[\s*${TEXT},`,
  String.raw`\['\w+', ${TEXT},`,
  String.raw`^\s*${TEXT}: *[([{]`,
  String.raw`^\s*${TEXT}:$`,
  String.raw`\bname: ${TEXT}`,
].map((pattern) => new RegExp(pattern, 'gms'));

export const titlesIn = (source: string): string[] =>
  TITLES.flatMap((pattern) => [...source.matchAll(pattern)].map(([, , title = '']) => title.replaceAll('\\', '')));
