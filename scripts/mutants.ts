/**
 * Mutation testing: makes a small change to a file (a mutant), runs the unit and contract tests that import the file, and prints whether
 * one of them failed. If none did, the mutant survived: no test covers the changed rule.
 *
 * npm run mutants -- [--count 60] [--seed N] [src/node src/lifecycle ...]
 *
 * The tests run in a copy of the repository in a temporary folder.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { parseAst } from 'vitest/node';

const repository = join(import.meta.dirname, '..');
/** After this time, the tests are killed and the mutant counts as killed, because the change may have made a loop endless. */
const LIMIT_MILLIS = 180_000;
/** The number of random lives of each property test. It is low because the tests run once per mutant. */
const LIVES = '60';
const NOT_MUTATED =
  /\.test\.ts$|-fixtures?\.ts$|-arbitrary\.ts$|\/testing\.ts$|^src\/api\/generated\/|^src\/simulation\//;
const OPERATORS: Readonly<Record<string, string>> = {
  '===': '!==',
  '!==': '===',
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
  '&&': '||',
  '||': '&&',
  '+': '-',
  '-': '+',
};

interface SyntaxNode {
  type: string;
  start: number;
  end: number;
  [child: string]: unknown;
}

interface Mutant {
  path: string;
  line: number;
  change: string;
  source: string;
}

const isNode = (value: unknown): value is SyntaxNode =>
  typeof value === 'object' && value !== null && typeof (value as SyntaxNode).type === 'string';

function* nodesIn(node: SyntaxNode): Generator<SyntaxNode> {
  yield node;
  for (const child of Object.values(node).flat()) if (isNode(child)) yield* nodesIn(child);
}

function replacements(node: SyntaxNode, source: string): [number, number, string][] {
  const { type, operator, left, right, test, consequent } = node as SyntaxNode & Record<string, SyntaxNode>;
  const found: [number, number, string][] = [];
  if ((type === 'BinaryExpression' || type === 'LogicalExpression') && left && right) {
    const other = OPERATORS[String(operator)];
    const at = source.indexOf(String(operator), left.end);
    // A `+` next to a string literal is not changed, because it usually builds a message.
    const isText = operator === ('+' as never) && /['"`]/.test(source.slice(left.start, right.end));
    if (other !== undefined && at < right.start && !isText) found.push([at, at + String(operator).length, other]);
  }
  if ((type === 'IfStatement' || type === 'ConditionalExpression') && test)
    found.push([test.start, test.end, `!(${source.slice(test.start, test.end)})`]);
  if (type === 'IfStatement' && consequent) found.push([consequent.start, consequent.end, '{}']);
  return found;
}

function mutantsOf(path: string): Mutant[] {
  const source = readFileSync(join(repository, path), 'utf8');
  const program = parseAst(source, { lang: 'ts' }) as unknown as SyntaxNode;
  return [...nodesIn(program)].flatMap((node) =>
    replacements(node, source).map(([start, end, text]) => ({
      path,
      line: source.slice(0, start).split('\n').length,
      change: `${source.slice(start, end).split('\n')[0]} -> ${text.split('\n')[0]}`,
      source: source.slice(0, start) + text + source.slice(end),
    })),
  );
}

/** The numbers are in [0, 1) (mulberry32). The same seed produces the same numbers. */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const git = (...args: string[]): string => execFileSync('git', args, { cwd: repository, encoding: 'utf8' });

/** The folder is a repository, because some tests read documents and examples or ask git for the files. */
function copyRepository(): string {
  const folder = mkdtempSync(join(tmpdir(), 'lifepod-mutants-'));
  git('clone', '--quiet', '--shared', repository, folder);
  const kept = git('ls-files')
    .trim()
    .split('\n')
    .filter((path) => existsSync(join(repository, path)));
  for (const path of [...kept, 'src/api/generated'])
    cpSync(join(repository, path), join(folder, path), { recursive: true });
  symlinkSync(join(repository, 'node_modules'), join(folder, 'node_modules'));
  return folder;
}

async function isKilled(folder: string, { path, source }: Mutant): Promise<boolean> {
  const original = readFileSync(join(repository, path));
  writeFileSync(join(folder, path), source);
  const killed = await testsFail(folder, [path], LIMIT_MILLIS);
  writeFileSync(join(folder, path), original);
  return killed;
}

/** Resolves with whether a unit or contract test that imports one of the files, directly or indirectly, fails or takes too long. */
async function testsFail(folder: string, paths: string[], limitMillis: number): Promise<boolean> {
  const projects = ['--project', 'unit', '--project', 'contract'];
  const args = ['related', ...paths, '--run', '--bail', '1', '--reporter', 'dot', '--passWithNoTests', ...projects];
  const env = { ...process.env, LIFEPOD_RUNS: LIVES, LIFEPOD_DEFER_RUNS: LIVES };
  const vitest = spawn('node_modules/.bin/vitest', args, { cwd: folder, env, stdio: 'ignore', detached: true });
  const limit = setTimeout(() => process.kill(-(vitest.pid ?? 0), 'SIGKILL'), limitMillis);
  const [code] = (await once(vitest, 'exit')) as [number | null];
  clearTimeout(limit);
  return code !== 0;
}

const { values, positionals } = parseArgs({
  options: { count: { type: 'string', default: '60' }, seed: { type: 'string' } },
  allowPositionals: true,
});
const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31));
const count = Number(values.count);
const areas = positionals.length > 0 ? positionals : ['src'];
const paths = git('ls-files', ...areas)
  .split('\n')
  .filter((path) => path.endsWith('.ts') && !NOT_MUTATED.test(path));
const all = paths.flatMap(mutantsOf);
const random = randomOf(seed);
console.log(`${count} of ${all.length} mutants of ${paths.length} files, seed ${seed}`);
const folder = copyRepository();
let killed = 0;
try {
  const chosen = Array.from({ length: count }, () => all[Math.floor(random() * all.length)]);
  const mutants = chosen.filter((mutant) => mutant !== undefined);
  // Without this check, a test that always fails would kill every mutant.
  if (await testsFail(folder, [...new Set(mutants.map(({ path }) => path))], mutants.length * LIMIT_MILLIS))
    throw new Error('the tests of the chosen files fail without a mutant: mend them first');
  for (const mutant of mutants) {
    const dead = await isKilled(folder, mutant);
    if (dead) killed++;
    console.log(`${dead ? 'killed  ' : 'SURVIVED'} ${mutant.path}:${mutant.line} ${mutant.change}`);
  }
  console.log(`${killed} of ${count} mutants were killed (seed ${seed})`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
