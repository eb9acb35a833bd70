/**
 * `npm run bench [name...] [-- option...]`: runs the named benchmarks, or all of them. Each prints its results as Markdown. Only the
 * benchmark of the API server has options (api/api.ts).
 */
import { api } from './api/api.ts';
import { defer } from './defer.ts';
import { dns } from './dns/dns.ts';
import { packageSizeAndStart } from './package.ts';
import { scale } from './scale.ts';
import { scheduler } from './scheduler.ts';
import { services } from './services.ts';
import { stall } from './stall.ts';
import { startup } from './startup.ts';
import { volumes } from './volumes.ts';

const benchmarks: Record<string, (options: string[]) => Promise<void>> = {
  startup,
  defer,
  scale,
  volumes,
  stall,
  scheduler,
  services,
  dns,
  package: packageSizeAndStart,
  api,
};
const args = process.argv.slice(2);
const first = args.findIndex((arg) => arg.startsWith('--'));
const wanted = first < 0 ? args : args.slice(0, first);
const options = first < 0 ? [] : args.slice(first);
for (const name of wanted.length > 0 ? wanted : Object.keys(benchmarks)) {
  const benchmark = benchmarks[name];
  if (benchmark === undefined)
    throw new Error(`unknown benchmark ${name}; choose from ${Object.keys(benchmarks).join(', ')}`);
  await benchmark(options);
}
