import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import { expect, test } from 'vitest';
import { OPTION_GROUPS } from '../../engine/options/option-groups.ts';
import { program } from '../main.ts';
import { allCommands, fullName, layOutHelp, MOST_COLUMNS } from './help-format.ts';

const helpOf = (command: Command): string => {
  let text = '';
  command.configureOutput({ writeOut: (part) => (text += part) });
  command.outputHelp();
  return text;
};

test.each(allCommands(program).map((command) => [fullName(command), command] as const))(
  'no line of the help of %s is longer than 100 columns',
  (name, command) => {
    const lines = helpOf(command).split('\n');
    expect(lines[0]).toContain(`Usage: ${name}`);
    expect(lines.filter((line) => line.length > MOST_COLUMNS)).toEqual([]);
  },
);

test('the description of a long term begins on the next line, at the column of the other descriptions', () => {
  const command = new Command('x')
    .option('--a <n>', 'short')
    .option(`--${'long-'.repeat(8)}name <value>`, 'of a long term')
    .option('--list <list>', `thresholds such as ${'memory.available<100Mi,'.repeat(5)}end`);
  layOutHelp(command);
  expect(helpOf(command)).toBe(
    [
      'Usage: x [options]',
      '',
      'Options:',
      '  --a <n>                         short',
      '  --long-long-long-long-long-long-long-long-name <value>',
      '                                  of a long term',
      '  --list <list>                   thresholds such as memory.available<100Mi,memory.available<100Mi,',
      '                                  memory.available<100Mi,memory.available<100Mi,',
      '                                  memory.available<100Mi,end',
      '  -h, --help                      display help for command',
      '',
    ].join('\n'),
  );
});

/** Returns the first cells of the rows of each table, by the first cell of the table's heading. */
function readmeOptions(): Record<string, string[]> {
  const readme = readFileSync(new URL('../../../README.md', import.meta.url), 'utf8');
  const [, section = ''] = /^## Options of `lifepod up`$([\s\S]*?)^## /m.exec(readme) ?? [];
  const tables = section.split(/\n\n+/).filter((part) => part.startsWith('| '));
  return Object.fromEntries(
    tables.map((table) => {
      const [head = '', , ...rows] = table.split('\n').map((row) => row.split('|')[1]?.trim() ?? '');
      return [
        head.toLowerCase(),
        rows.flatMap((row) => [...row.matchAll(/`(--[\w-]+)/g)].map((match) => match[1] ?? '')).sort(),
      ];
    }),
  );
}

test('the help of lifepod up has the same options in the same groups as the tables of the README', () => {
  const up = program.commands.find((command) => command.name() === 'up') as Command;
  const visible = up.options.filter(({ hidden }) => !hidden);
  const groups = Object.values(OPTION_GROUPS).map((heading) => [
    heading.slice(0, -1).toLowerCase(),
    visible
      .filter(({ helpGroupHeading }) => helpGroupHeading === heading)
      .map(({ long }) => long ?? '')
      .sort(),
  ]);
  expect(Object.fromEntries(groups)).toEqual(readmeOptions());
});
