/** Runs the demo's commands with kubectl, or with lifepod's own client if kubectl is not installed. */

import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { coreResource } from '../../api/resources.ts';
import { clientFromKubeconfig } from '../../client/kubeconfig.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import { runCommandOk } from '../../platform/processes.ts';

export interface DemoKubectl {
  apply(file: string): Promise<void>;
  /** Does nothing if kubectl is not installed. */
  logs(pod: string, container: string): Promise<void>;
  delete(pod: string, graceSeconds: number): Promise<void>;
}

const RESOURCES: Readonly<Record<string, string>> = { Pod: 'pods', Service: 'services' };
const NAMESPACE = 'default';

export function createDemoKubectl(
  kubeconfig: string,
  program: string | undefined,
  say: (line: string) => void,
  signal: AbortSignal,
): DemoKubectl {
  return program === undefined ? withClient(kubeconfig, say) : withKubectl(kubeconfig, program, say, signal);
}

function withKubectl(
  kubeconfig: string,
  program: string,
  say: (line: string) => void,
  signal: AbortSignal,
): DemoKubectl {
  // The cache is for the address of this server, so later calls of the user's kubectl cannot use it.
  const env = { ...process.env, KUBECONFIG: kubeconfig, KUBECACHEDIR: join(dirname(kubeconfig), 'kubectl-cache') };
  const run = async (args: string[]): Promise<void> => {
    say(`\n$ kubectl ${args.join(' ')}`);
    const output = await runCommandOk(program, args, { env, signal });
    if (output.trim() !== '') say(output.trimEnd());
  };
  return {
    apply: (file) => run(['apply', '-f', file]),
    logs: (pod, container) => run(['logs', pod, '-c', container, '--tail=1']),
    delete: (pod, graceSeconds) => run(['delete', 'pod', pod, `--grace-period=${graceSeconds}`]),
  };
}

function withClient(kubeconfig: string, say: (line: string) => void): DemoKubectl {
  const resource = async (plural: string) => (await clientFromKubeconfig(kubeconfig)).resource(coreResource(plural));
  return {
    async apply(file) {
      for (const document of parseAllDocuments(await readFile(file, 'utf8'))) {
        const object = document.toJS() as KubeObject | null;
        if (object === null) continue;
        await (await resource(RESOURCES[object.kind] ?? '')).create({
          ...object,
          metadata: { ...object.metadata, namespace: NAMESPACE },
        });
        say(`\ncreated ${object.kind} ${object.metadata.name}`);
      }
    },
    logs: async () => undefined,
    async delete(pod, graceSeconds) {
      say(`\ndeleting the Pod ${pod}`);
      await (await resource('pods')).delete(pod, NAMESPACE, { gracePeriodSeconds: graceSeconds });
    },
  };
}
