import { Command } from 'commander';
import { expect, test, vi } from 'vitest';
import { UserError } from '../../platform/files.ts';
import { addHelp } from './help-command.ts';
import { explainUsageErrors } from './usage-errors.ts';

async function run(...words: string[]): Promise<{ error: unknown; printed: string }> {
  const out: string[] = [];
  const program = new Command('lifepod').exitOverride();
  program.configureOutput({ writeOut: (text) => out.push(text), writeErr: (text) => out.push(text) });
  program.command('status').action(vi.fn());
  const image = program.command('image').description('manage images');
  image.command('load').alias('import').description('load images').action(vi.fn());
  addHelp(program);
  explainUsageErrors(program);
  const error = await program.parseAsync(words, { from: 'user' }).catch((thrown: unknown) => thrown);
  return { error, printed: out.join('') };
}

test.each([
  ['help nope', `unknown command 'nope'; see 'lifepod --help'`],
  ['help image nope', `unknown command 'nope'; see 'lifepod image --help'`],
  ['image help nope', `unknown command 'nope'; see 'lifepod image --help'`],
  ['help status nope', `unknown command 'nope'; see 'lifepod status --help'`],
])('lifepod %s is an error', async (words, message) => {
  expect((await run(...words.split(' '))).error).toEqual(new UserError(message));
});

test.each([
  ['nope', `lifepod: unknown command 'nope'; see 'lifepod --help'\n`],
  ['image nope', `lifepod: unknown command 'nope'; see 'lifepod image --help'\n`],
])('lifepod %s is an error, which commander reports', async (words, message) => {
  const { error, printed } = await run(...words.split(' '));
  expect(error).toMatchObject({ exitCode: 1 });
  expect(printed).toBe(message);
});

test.each([
  ['help', /Commands:[\s\S]* image /],
  ['help image', /^Usage: lifepod image [\s\S]*manage images/],
  ['image help', /^Usage: lifepod image /],
  ['help image load', /^Usage: lifepod image load/],
  ['image help import', /^Usage: lifepod image load/],
])('lifepod %s prints the help', async (words, text) => {
  const { error, printed } = await run(...words.split(' '));
  expect(error).not.toBeInstanceOf(Error);
  expect(printed).toMatch(text);
});
