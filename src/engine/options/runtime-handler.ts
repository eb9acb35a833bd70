/** Parses the option --runtime-handler, which describes a runtime for Pods with a RuntimeClass. Reads whether the program exists. */
import { dns1123LabelErrors } from '../../machinery/names.ts';
import { UserError } from '../../platform/files.ts';
import { isExecutable } from '../../platform/processes.ts';

/**
 * Returns `others` with the handler that `text`, a value of --runtime-handler, describes: NAME=/path/of/a/program or
 * NAME=type.of.a.shim. Throws a UserError if the text has another form, or if there is no such program.
 */
export function addRuntimeHandler(text: string, others: Record<string, string> = {}): Record<string, string> {
  const [, name = '', runtime = ''] = /^([^=]*)=(.*)$/.exec(text) ?? [];
  if (dns1123LabelErrors(name).length > 0 || name === 'runc' || !/^(\/.+|[a-z0-9]+(\.[a-z0-9-]+)+)$/.test(runtime)) {
    throw new UserError(
      `--runtime-handler ${JSON.stringify(text)} is not a valid handler: give NAME=/path/of/a/program or NAME=type.of.a.shim`,
    );
  }
  // A recorded handler is not examined: an engine starts although the program has been removed, and only Pods that need it wait.
  if (runtime.startsWith('/') && !isExecutable(runtime))
    throw new UserError(
      `--runtime-handler ${JSON.stringify(text)}: there is no program ${runtime}: install it, or give the path of another one`,
    );
  return { ...others, [name]: runtime };
}
