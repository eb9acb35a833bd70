/**
 * Keeps standard input in blocking mode. bin/lifepod lets Node.js load this module before the sources; the build of the package needs no
 * such module (scripts/bundle.ts).
 *
 * An import of `node:process`, as in commander, reads all enumerable properties of the process. Reading `process.stdin` would make standard
 * input non-blocking, also for other programs that share it. Their reads would fail with EAGAIN.
 */
Object.defineProperty(process, 'stdin', { enumerable: false });
