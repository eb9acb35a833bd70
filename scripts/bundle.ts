/**
 * Joins the modules that tsc has written to a folder into few files, because loading hundreds of modules takes a third of the start. The
 * packages that they import stay outside. usage: bundle.ts MODULES TARGET
 */
import { isAbsolute, join, relative, resolve } from 'node:path';
import { rolldown } from 'rolldown';

/** The modules that Node.js runs: the command line, the process of the cluster DNS, and the thread that parses YAML. */
const ENTRIES = ['cli/main', 'network/dns-server/main', 'apiserver/yaml/worker'];

/** Matches expressions of a module that mean its own place. */
const OWN_URL = /\bimport\.meta\.url\b/g;

const [modules = '', target = ''] = process.argv.slice(2).map((path) => resolve(path));

/** Returns an expression for the URL that the module has in TARGET if it is not joined with others. The files are all in a folder `dist`. */
const placeOf = (id: string): string =>
  `(import.meta.url.slice(0, import.meta.url.lastIndexOf('/dist/') + 6) + ${JSON.stringify(relative(modules, id))})`;

const bundle = await rolldown({
  input: Object.fromEntries(ENTRIES.map((name) => [name, join(modules, `${name}.js`)])),
  platform: 'node',
  external: (id) => !id.startsWith('.') && !isAbsolute(id),
  plugins: [{ name: 'places', transform: (code, id) => code.replace(OWN_URL, placeOf(id)) }],
});
await bundle.write({
  dir: target,
  format: 'esm',
  entryFileNames: '[name].js',
  chunkFileNames: 'chunks/[name]-[hash].js',
});
await bundle.close();
