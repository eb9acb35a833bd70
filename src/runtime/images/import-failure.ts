/**
 * Explains why containerd could not import an image archive, from the error output of ctr.
 * Source: the messages of ctr of containerd 1.6 to 2.x, which also prints log lines of containerd's client.
 */
import { fullDisk } from '../full-disk.ts';
import { noImageForCpu } from './cpu/archive-cpu.ts';

export const MAKE_AGAIN = 'create it or copy it again';

const DIGEST = 'sha256:[0-9a-f]+';
const DAMAGES: readonly [pattern: RegExp, kind: string][] = [
  [new RegExp(`failed to extract layer .*content digest (${DIGEST}): not found`), 'layer'],
  // This may also be a manifest or a configuration.
  [new RegExp(`content digest (${DIGEST}): not found`), 'blob'],
  [/layer "([^"]+)" not found/, 'layer'],
  [/no target for symlink layer from "[^"]*" to "([^"]+)"/, 'layer'],
  [/image config "([^"]+)" not found/, 'configuration'],
  [
    new RegExp(
      `failed to extract layer (?:\\([^)]*\\b)?(${DIGEST})\\b.*(?:unexpected EOF|archive/tar: |gzip: |flate: |zlib: |magic number mismatch)`,
    ),
    'layer',
  ],
  // The message contains the digest of the content that was found, and the log line a chain ID: neither is the digest of the layer in the
  // archive.
  [/wrong diff id calculated on extraction/, 'layer'],
  [new RegExp(`unexpected commit (?:digest ${DIGEST}|size \\d+), expected (${DIGEST})?`), 'blob'],
];

/** The errors of Go's JSON decoder about the configuration of an image. */
const NOT_JSON =
  /(?:unable to resolve platform|config).*?(?:invalid character '.*?' (?:looking|after|in|exceeded)|unexpected end of JSON input)/;

/** The errors of ctr about a containerd that has ended. "unexpected EOF" is an error about the archive. */
export const RUNTIME_ENDED = /: unavailable\s*$|(?<!unexpected )EOF: unknown\s*$|failed to dial "/m;

export const runtimeEnded = (file: string): string =>
  `the image archive ${file} was not loaded: the container runtime ended meanwhile; start the engine again if it was stopped, and repeat the command`;

/** containerd reports these texts if the image has no manifest for the platform of the machine. */
const OTHER_PLATFORM = /image might be filtered out|no match for platform in manifest/;

/** Returns one sentence. `code`: the exit code of ctr; null if a signal ended ctr. */
export function importFailure(file: string, stderr: string, code: number | null): string {
  const full = fullDisk(stderr);
  if (full !== undefined)
    return `the image archive ${file} cannot be loaded: the disk of ${full.folder === undefined ? "containerd's folder" : `the folder ${full.folder}, which containerd needs,`} is full; free some space and try again`;
  if (NOT_JSON.test(stderr))
    return `the image archive ${file} is damaged (its configuration is not JSON): ${MAKE_AGAIN}`;
  if (OTHER_PLATFORM.test(stderr)) return noImageForCpu(file);
  for (const [pattern, kind] of DAMAGES) {
    const found = pattern.exec(stderr);
    if (found === null) continue;
    const what = found[1] === undefined ? `a ${kind}` : `its ${kind} ${found[1]}`;
    return `the image archive ${file} is damaged (${what} is missing or damaged): ${MAKE_AGAIN}`;
  }
  if (RUNTIME_ENDED.test(stderr)) return runtimeEnded(file);
  const lines = stderr.split('\n').map((line) => line.replace(/^ctr: /, '').trim());
  const cause = lines.filter((line) => line !== '' && !/^time="[^"]*" level=\w+ /.test(line)).join('; ');
  if (code === null && cause === '') return `the image archive ${file} was not loaded: ctr was killed; try again`;
  return `containerd does not accept the image archive ${file}: ${cause || `ctr ended with exit code ${code}`}`;
}
