/**
 * `lifepod describe pod`: what kubectl describes, with the Pod's defer containers.
 * The text is that of the kubectl on the PATH: users know it, and it is the same in every other line.
 */

import type { Pod } from '../../api/generated/types.ts';
import { PODS } from '../../api/resources.ts';
import { isApiError } from '../../machinery/status.ts';
import { UserError } from '../../platform/files.ts';
import { findProgram, runCommand } from '../../platform/processes.ts';
import { resolveTarget, type TargetOptions } from '../target.ts';
import { deferSection, insertDeferSection } from './describe-defer.ts';

const POD_TYPES = ['pod', 'pods', 'po'];

/** `type` and `name`, or `pod/NAME` alone. */
export async function describe(type: string, name: string | undefined, options: TargetOptions): Promise<void> {
  const [kind = '', pod = name] = type.split('/');
  if (!POD_TYPES.includes(kind) || pod === undefined || pod === '') {
    throw new UserError(
      `lifepod describes Pods: give 'pod NAME' or pod/NAME; for all else there is 'kubectl describe'`,
    );
  }
  const program = findProgram('kubectl');
  if (program === undefined) {
    throw new UserError(
      'kubectl is not on the PATH, and its text is what is shown: install kubectl 1.32 or newer (https://kubernetes.io/docs/tasks/tools)',
    );
  }
  const { client, namespace, kubectl } = await resolveTarget(options);
  const args = ['describe', 'pod', pod, '--namespace', namespace, ...kubectl.args];
  const described = await runCommand(program, args, { env: kubectl.env });
  process.stderr.write(described.stderr);
  if (described.code !== 0) {
    process.exitCode = described.code;
    return;
  }
  const found = await client
    .resource<Pod>(PODS)
    .get(pod, namespace)
    .catch((error: unknown) => {
      // It has gone since kubectl has seen it.
      if (isApiError(error, 'NotFound')) return undefined;
      throw error;
    });
  const section = found === undefined ? [] : deferSection(found);
  process.stdout.write(insertDeferSection(described.stdout, section));
}
