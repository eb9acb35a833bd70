import { expect } from 'vitest';
import { type CommandResult, runCommand } from '../../../../src/platform/processes.ts';
import { lifepod } from '../../../support/own-engine.ts';

export interface KubectlProgram {
  /** The names of different programs differ, because all programs use one engine. */
  own(name: string): string;
  /** `args` are separated by spaces, and `input` is the standard input. */
  run(args: string, input?: string): Promise<CommandResult>;
  /** Like run(), but rejects if kubectl fails, and resolves with its output. */
  ok(args: string, input?: string): Promise<string>;
  /** Resolves with the error of kubectl, which must fail. */
  refused(args: string, input?: string): Promise<string>;
}

/** own() puts `prefix` in front of names of objects. */
export function kubectlProgram(path: string, prefix: string): KubectlProgram {
  const run: KubectlProgram['run'] = (args, input = '') =>
    runCommand(path, args.split(' '), {
      env: { ...process.env, KUBECONFIG: lifepod.kubeconfig, HOME: lifepod.dataDir },
      input,
    });
  return {
    own: (name) => `${prefix}-${name}`,
    run,
    async ok(args, input) {
      const { code, stdout, stderr } = await run(args, input);
      if (code !== 0) throw new Error(`kubectl ${args}: ${stderr}`);
      return stdout;
    },
    async refused(args, input) {
      const { code, stderr } = await run(args, input);
      expect(code).toBe(1);
      return stderr.trim();
    },
  };
}

export const RBAC = 'rbac.authorization.k8s.io';
