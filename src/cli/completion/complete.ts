/**
 * `lifepod __complete WORD…`: prints the possible completions of the last word. The scripts of `lifepod completion` run it, and so does
 * kubectl, through bin/kubectl_complete-lifepod. If it fails, it prints no completions and no error, because the user is typing.
 *
 * Each line is a word, which a tab and its description may follow. The last line is a colon and a number: 4 for no other words, 0 for
 * files, 16 for folders. Source: the directives of cobra, which kubectl understands.
 */
import type { Command } from 'commander';
import { untilAborted } from '../../platform/on-abort.ts';
import { suggest, type Word } from './suggest.ts';

/** The user waits at the prompt. An engine usually answers in milliseconds. */
const PATIENCE_MILLIS = 1000;
const LONGEST_DESCRIPTION = 80;

const DIRECTIVES = { words: 4, files: 0, folders: 16 } as const;

/** Ends the process, which a request without an answer would keep alive. */
export async function completeWords(program: Command, words: readonly string[]): Promise<void> {
  const answer = await answers(program, words).catch(() => [`:${DIRECTIVES.words}`]);
  process.stdout.write(`${answer.join('\n')}\n`, () => process.exit(0));
}

/** Resolves with the lines to print. Rejects if the names cannot be found within PATIENCE_MILLIS. */
export async function answers(program: Command, words: readonly string[]): Promise<string[]> {
  const found = suggest(program, words);
  if (found.kind === 'files' || found.kind === 'folders') return [`:${DIRECTIVES[found.kind]}`];
  if (found.kind === 'words') return linesOf(found.words);
  const { findNames } = await import('./names.ts');
  const names = await untilAborted(AbortSignal.timeout(PATIENCE_MILLIS), findNames(found));
  return linesOf(names.map((name) => ({ text: found.before + name })));
}

const linesOf = (words: readonly Word[]): string[] => [
  ...words.map(({ text, description }) =>
    description === undefined || description === '' ? text : `${text}\t${shortened(description)}`,
  ),
  `:${DIRECTIVES.words}`,
];

function shortened(text: string): string {
  if (text.length <= LONGEST_DESCRIPTION) return text;
  return `${text.slice(0, text.lastIndexOf(' ', LONGEST_DESCRIPTION - 1))}…`;
}
