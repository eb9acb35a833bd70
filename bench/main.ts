/** `npm run bench [name...]`: runs the named benchmarks, or all of them. Each prints its results as Markdown. */
import { defer } from './defer.ts';
import { scale } from './scale.ts';
import { scheduler } from './scheduler.ts';
import { stall } from './stall.ts';
import { startup } from './startup.ts';
import { volumes } from './volumes.ts';

const benchmarks: Record<string, () => Promise<void>> = { startup, defer, scale, volumes, stall, scheduler };
const wanted = process.argv.slice(2);
for (const name of wanted.length > 0 ? wanted : Object.keys(benchmarks)) {
  const benchmark = benchmarks[name];
  if (benchmark === undefined)
    throw new Error(`unknown benchmark ${name}; choose from ${Object.keys(benchmarks).join(', ')}`);
  await benchmark();
}
