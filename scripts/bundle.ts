/**
 * Builds the folder that replaces src/ in the npm package and in most tests with real engines: joins the modules into few files of
 * JavaScript, because loading hundreds of modules takes a third of the start, and copies the data files that lifepod reads at run time.
 * Most packages that the modules import are joined with them. usage: bundle.ts TARGET, where TARGET is a folder named `dist`.
 */
import { cpSync, globSync, mkdirSync } from 'node:fs';
import { dirname, isAbsolute, join, relative, resolve } from 'node:path';
import { type Plugin, rolldown } from 'rolldown';

const SOURCES = join(import.meta.dirname, '../src');

const ENTRIES = ['cli/main', 'network/dns-server/main', 'apiserver/yaml/worker'];

const DATA = ['**/*.proto', 'cli/completion/completion.*', 'api/{facts,generated}/*.json'];

/** lmdb is a native library, and protobufjs loads a package in a way that works only from its own file. */
const OUTSIDE = /^(?:lmdb|protobufjs)(?:$|\/)/;

/** See processModule. */
const PROCESS_MODULE = '\0process';

/**
 * Lets modules that import `node:process` use the global variable. The module of Node.js reads each property of the process for its
 * exports. Reading `process.stdin` makes standard input non-blocking, also for other programs that share it, whose reads then fail with
 * EAGAIN.
 */
const processModule: Plugin = {
  name: 'process',
  resolveId: (source, _importer, { kind }) =>
    kind !== 'require-call' && /^(?:node:)?process$/.test(source) ? PROCESS_MODULE : undefined,
  load: (id) => (id === PROCESS_MODULE ? 'export default globalThis.process;' : undefined),
};

const OWN_URL = /\bimport\.meta\.url\b/g;

/**
 * Returns a JavaScript expression for the URL that the module would have in TARGET if it were not joined with other modules. All files are
 * in a folder named `dist`. Throws if the module is not in src/.
 */
function placeOf(id: string): string {
  if (!id.startsWith(SOURCES)) throw new Error(`${id} uses its own place, which it does not have in a joined file`);
  const path = relative(SOURCES, id).replace(/\.ts$/, '.js');
  return `(import.meta.url.slice(0, import.meta.url.lastIndexOf('/dist/') + 6) + ${JSON.stringify(path)})`;
}

export async function buildTo(target: string): Promise<void> {
  const bundle = await rolldown({
    input: Object.fromEntries(ENTRIES.map((name) => [name, join(SOURCES, `${name}.ts`)])),
    platform: 'node',
    external: (id) => OUTSIDE.test(id),
    plugins: [
      processModule,
      { name: 'places', transform: (code, id) => (isAbsolute(id) ? code.replace(OWN_URL, () => placeOf(id)) : code) },
    ],
  });
  await bundle.write({
    dir: target,
    format: 'esm',
    // V8 keeps the source of each module in memory: with one non-ASCII character, it takes twice as much, and is read more slowly.
    comments: { legal: true, jsdoc: false, annotation: false },
    minify: { compress: false, mangle: false, codegen: { removeWhitespace: false, asciiOnly: true } },
    entryFileNames: '[name].js',
    chunkFileNames: 'chunks/[name]-[hash].js',
  });
  await bundle.close();
  for (const path of globSync(DATA, { cwd: SOURCES })) {
    mkdirSync(dirname(join(target, path)), { recursive: true });
    cpSync(join(SOURCES, path), join(target, path));
  }
}

if (import.meta.main) await buildTo(resolve(process.argv[2] ?? ''));
