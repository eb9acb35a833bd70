import { Command } from 'commander';
import { expect, test } from 'vitest';
import { UserError } from '../../platform/files.ts';
import { helpFor } from './help-command.ts';
import { fullName } from './help-format.ts';

const program = new Command('lifepod');
program.command('status');
program.command('logs').argument('<pod>').argument('[container]');
const image = program.command('image');
image.command('load').alias('import');
image.command('rm');

test.each([
  ['help', 'lifepod'],
  ['help status', 'lifepod status'],
  ['help image', 'lifepod image'],
  ['help help', 'lifepod'],
  ['help image help', 'lifepod image'],
  ['image help', 'lifepod image'],
  ['help image load', 'lifepod image load'],
  ['image help import', 'lifepod image load'],
  ['', undefined],
  ['status', undefined],
  ['image load', undefined],
  ['image help --colour', undefined],
  ['logs help', undefined],
  ['nope', undefined],
])('the words %j ask for the help of %s', (words, name) => {
  const found = helpFor(program, words.split(' '));
  expect(found && fullName(found)).toBe(name);
});

test.each([
  ['help nope', `unknown command 'nope'; see 'lifepod --help'`],
  ['help image nope', `unknown command 'nope'; see 'lifepod image --help'`],
  ['image help nope', `unknown command 'nope'; see 'lifepod image --help'`],
  ['help status logs', `help is about one command at a time: see 'lifepod status --help' and 'lifepod logs --help'`],
  [
    'help image load rm',
    `help is about one command at a time: see 'lifepod image load --help' and 'lifepod image rm --help'`,
  ],
  ['help status nope', `unknown command 'nope'; see 'lifepod status --help'`],
])('lifepod %s is an error', (words, message) => {
  expect(() => helpFor(program, words.split(' '))).toThrow(new UserError(message));
});
