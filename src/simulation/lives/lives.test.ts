/**
 * Compares lives with the recorded lives. Each .life file of this folder has a group of lives, with their descriptions and one line for
 * each step, so that a change of the behavior shows as a change of these files. LIFEPOD_RECORD_LIVES=1 rewrites them.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { live } from '../pod-life.ts';
import { deferring } from './deferring.ts';
import type { LifeToRead } from './life-to-read.ts';
import { ending, running, starting } from './plain.ts';
import { renderLife } from './render.ts';

const groups: Readonly<Record<string, readonly LifeToRead[]>> = { starting, running, ending, deferring };

const textOf = async ({ about, life }: LifeToRead): Promise<string> =>
  [about, '', ...renderLife(await live(life)), ''].join('\n');

describe.each(Object.entries(groups))('the recorded lives in the file of the group %s', (group, lives) => {
  const file = join(import.meta.dirname, `${group}.life`);
  const isRecording = process.env['LIFEPOD_RECORD_LIVES'] !== undefined;

  it('the file of a group of lives has these lives and no others', async () => {
    if (isRecording) writeFileSync(file, (await Promise.all(lives.map(textOf))).join('\n'));
    const text = readFileSync(file, 'utf8');
    expect(text.split('\n').filter((line) => line !== '' && !/^ *\d+\.\d{3} {2}/.test(line))).toEqual(
      lives.map(({ about }) => about),
    );
  });

  it.each(lives.map((each) => [each.about, each] as const))(
    'the life has the recorded steps: %s',
    async (_about, each) => {
      const recorded = existsSync(file) ? readFileSync(file, 'utf8') : '';
      const begin = recorded.indexOf(each.about);
      const end = recorded.indexOf('\n\n', recorded.indexOf('\n\n', begin) + 2);
      expect(await textOf(each)).toBe(`${recorded.slice(begin, end < 0 ? undefined : end).trimEnd()}\n`);
    },
  );
});
