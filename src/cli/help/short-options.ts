import type { Command } from 'commander';
import { allCommands } from './help-format.ts';

/**
 * Converts short options with values from a form that kubectl accepts to commander's, before `--`: `-o=json` becomes `-o` and `json`.
 */
export function plainValues(program: Command, args: readonly string[]): string[] {
  const shorts = new Set(
    allCommands(program).flatMap(({ options }) => options.filter(({ required }) => required).map(({ short }) => short)),
  );
  const dashes = args.indexOf('--');
  const own = dashes === -1 ? args : args.slice(0, dashes);
  const words = own.flatMap((arg) => {
    const [, short, value = ''] = /^(-\w)=(.*)$/s.exec(arg) ?? [];
    return short !== undefined && shorts.has(short) ? [short, value] : [arg];
  });
  return [...words, ...args.slice(own.length)];
}
