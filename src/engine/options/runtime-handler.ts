/** Parses the option --runtime-handler, which describes a runtime for Pods with a RuntimeClass. Checks that the program exists. */
import { accessSync, constants, type Stats, statSync } from 'node:fs';
import { dns1123LabelErrors } from '../../machinery/names.ts';
import { UserError } from '../../platform/files.ts';

/**
 * Returns `others` with the handler that `text` describes: NAME=/path/of/a/program or NAME=type.of.a.shim. Throws a UserError if the text
 * has another form, or if there is no such program.
 */
export function addRuntimeHandler(text: string, others: Record<string, string> = {}): Record<string, string> {
  const [, name = '', runtime = ''] = /^([^=]*)=(.*)$/.exec(text) ?? [];
  if (name === 'runc')
    throw new UserError(
      `--runtime-handler ${JSON.stringify(text)}: the handler runc exists already, for Pods without a RuntimeClass: give another name`,
    );
  if (dns1123LabelErrors(name).length > 0 || !/^(\/.+|[a-z0-9]+(\.[a-z0-9-]+)+)$/.test(runtime)) {
    throw new UserError(
      `--runtime-handler ${JSON.stringify(text)} is not a valid handler: give NAME=/path/of/a/program or NAME=type.of.a.shim, with a name of lowercase letters, digits and -`,
    );
  }
  // Only new handlers are checked. If the program of a recorded handler is missing, the engine starts, and only Pods that need it wait.
  if (runtime.startsWith('/') && !isProgram(runtime))
    throw new UserError(
      `--runtime-handler ${JSON.stringify(text)}: there is no program ${runtime}: install it, or give the path of another one`,
    );
  return { ...others, [name]: runtime };
}

/** Returns whether root can run the file; true if this user may not examine the file: as root, the engine examines it again. */
export function isProgram(
  path: string,
  isRoot = process.geteuid?.() === 0,
  examine: (path: string) => Pick<Stats, 'isFile' | 'mode'> = statSync,
): boolean {
  try {
    const found = examine(path);
    // access(2) also fails if the file system forbids execution. For other users, it could fail although root can run the file.
    if (isRoot) accessSync(path, constants.X_OK);
    return found.isFile() && (found.mode & 0o111) !== 0;
  } catch (error) {
    return !isRoot && (error as NodeJS.ErrnoException).code === 'EACCES';
  }
}
