/**
 * `npm run bench api -- [--against CHECKOUT] [--only SECTION]`: measures the API server against a client on the same machine. With
 * --against, the server of another checkout takes turns with this one. Each figure is then the median of its rounds, and the improvement is
 * the median of the rounds' ratios: above 1, this checkout is better.
 */
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { median } from '../engine.ts';
import type { Figure, Running, Section } from './measure.ts';
import { sections } from './sections.ts';

export async function api(args: string[]): Promise<void> {
  const { values } = parseArgs({ args, options: { against: { type: 'string' }, only: { type: 'string' } } });
  const checkouts = [join(import.meta.dirname, '../..'), ...(values.against === undefined ? [] : [values.against])];
  const wanted = values.only === undefined ? Object.keys(sections) : [values.only];
  console.log(
    checkouts.length === 1 ? '| what | this |\n|---|---|' : '| what | this | other | improvement |\n|---|---|---|---|',
  );
  for (const name of wanted) {
    const section = sections[name];
    if (section === undefined)
      throw new Error(`unknown section ${name}; choose from ${Object.keys(sections).join(', ')}`);
    print(await runInTurns(section, checkouts));
  }
}

/**
 * Resolves with the figures of each round, for each checkout. The checkouts alternately go first in each measurement. The servers are
 * started `starts` times, because the rates of two starts differ by up to a third, depending on which functions the compiler optimizes.
 */
async function runInTurns({ starts = 1, rounds, open }: Section, checkouts: string[]): Promise<Figure[][][]> {
  const figures = checkouts.map((): Figure[][] => []);
  for (let start = 0; start < starts; start++) {
    const opened: { running: Running; figures: Figure[][] }[] = [];
    try {
      for (const [index, checkout] of checkouts.entries())
        opened.push({ running: await open(checkout), figures: figures[index] ?? [] });
      for (let round = 0; round < rounds; round++) {
        const order = (start + round) % 2 === 0 ? opened : opened.toReversed();
        for (const { figures } of order) figures.push([]);
        for (const measure of (opened[0]?.running.measures ?? []).keys())
          for (const { running, figures } of order)
            figures.at(-1)?.push(...((await running.measures[measure]?.()) ?? []));
      }
    } finally {
      for (const { running } of opened) await running.end();
    }
  }
  return figures;
}

function print([own = [], other]: Figure[][][]): void {
  for (const [index, { what, unit }] of (own[0] ?? []).entries()) {
    const [ownValues, otherValues] = [own, other].map((rounds) => rounds?.map((figures) => figures[index]?.value ?? 0));
    const shown = (values: number[] = []): string => `${format(median(values))} ${unit}`;
    const cells = [what, shown(ownValues)];
    if (otherValues !== undefined) {
      const ratios = (ownValues ?? []).map((value, round) => value / (otherValues[round] ?? Number.NaN));
      const ratio = median(ratios);
      cells.push(shown(otherValues), (unit === '/s' ? ratio : 1 / ratio).toFixed(2));
    }
    console.log(`| ${cells.join(' | ')} |`);
  }
}

const format = (value: number): string => value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0);
