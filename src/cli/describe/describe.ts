/**
 * `lifepod describe pod`: runs the kubectl on the PATH, and inserts a section about defer containers into its output. All other lines
 * are exactly those of kubectl describe.
 */

import type { Pod } from '../../api/generated/types.ts';
import { PODS } from '../../api/resources.ts';
import { isApiError } from '../../machinery/status.ts';
import { UserError } from '../../platform/files.ts';
import { printable } from '../../platform/log/printable.ts';
import { findProgram, runCommand } from '../../platform/processes.ts';
import { resolveTarget, type TargetOptions } from '../target.ts';
import { presentPod, unnamedPod } from '../workloads/present-pod.ts';
import { isPodType } from '../workloads/type-names.ts';
import { deferSection, insertDeferSection } from './describe-defer.ts';

/**
 * Either `type` is pod and `name` is the Pod's name, or `type` is pod/NAME and `name` is undefined. Rejects with a UserError if the
 * arguments are invalid, or if the Pod does not exist.
 */
export async function describe(type: string, name: string | undefined, options: TargetOptions): Promise<void> {
  const [kind = '', pod = name] = type.split('/');
  if (!isPodType(kind) || pod === '') {
    throw new UserError(
      `lifepod describes Pods only: give 'pod NAME' or pod/NAME, or use 'kubectl describe' for other types`,
    );
  }
  if (type.includes('/') && name !== undefined) {
    throw new UserError(`lifepod describes one Pod: give 'pod NAME' or pod/NAME, not '${type} ${name}'`);
  }
  const target = await resolveTarget(options);
  if (pod === undefined) throw await unnamedPod(target, 'describe pod');
  const program = findProgram('kubectl');
  if (program === undefined) {
    throw new UserError(
      'kubectl is not on the PATH, but lifepod describe needs it: install kubectl 1.32 or newer (https://kubernetes.io/docs/tasks/tools)',
    );
  }
  const { client, namespace, kubectl } = target;
  const args = ['describe', 'pod', pod, '--namespace', namespace, ...kubectl.args];
  const described = await runCommand(program, args, { env: kubectl.env });
  // For a missing Pod, presentPod() rejects with an error that mentions a deleted or misplaced Pod.
  if (described.code !== 0) await presentPod(target, pod);
  process.stderr.write(described.stderr);
  if (described.code !== 0) {
    process.exitCode = described.code;
    return;
  }
  const found = await client
    .resource<Pod>(PODS)
    .get(pod, namespace)
    .catch((error: unknown) => {
      // The Pod may have been deleted after kubectl read it.
      if (isApiError(error, 'NotFound')) return undefined;
      throw error;
    });
  const section = found === undefined ? [] : deferSection(found);
  process.stdout.write(insertDeferSection(described.stdout, section.map(printable)));
}
