import { type Audit, createAudit } from '../../apiserver/audit/audit.ts';
import { openLogFile } from '../../apiserver/audit/log-file.ts';
import { type Policy, parsePolicy } from '../../apiserver/audit/policy.ts';
import { createSink } from '../../apiserver/audit/sink.ts';
import { standardOutput } from '../../apiserver/audit/standard-output.ts';
import { yamlToJson } from '../../apiserver/yaml/parse.ts';
import { readProblem } from '../../machinery/read-problem.ts';
import { UserError } from '../../platform/files.ts';
import { foreignLink } from '../../platform/folder-owners.ts';
import { readTextFile } from '../../platform/folders/text-file.ts';
import type { Metrics } from '../../platform/metrics.ts';
import type { Platform } from '../../platform/platform.ts';
import type { AuditSettings } from './audit-settings.ts';

const MAX_POLICY_BYTES = 3 * 1024 * 1024;

/** Rejects with a UserError if the policy or the file of the log cannot be used. */
export async function openAudit(settings: AuditSettings, { timers, log }: Platform, metrics: Metrics): Promise<Audit> {
  const { path, mode, format, maxEventBytes } = settings;
  const policy = readPolicy(settings.policyFile);
  const link = path === '-' ? undefined : linkIn(path);
  if (link !== undefined) throw new UserError(`--audit-log-path ${path} cannot be used: ${link}`);
  const output =
    path === '-' ? standardOutput() : await openLogFile({ ...settings, now: timers.now }).catch(refuse(path));
  const truncation = maxEventBytes === undefined ? undefined : { maxEventBytes };
  const sink = createSink({ output, mode, format, truncation, metrics, timers, log });
  return createAudit({ policy, sink, metrics, timers });
}

function linkIn(path: string): string | undefined {
  try {
    return foreignLink(path);
  } catch {
    // openLogFile() reports the error.
    return undefined;
  }
}

const refuse =
  (path: string) =>
  (error: Error): never => {
    throw new UserError(`--audit-log-path ${path} cannot be opened: ${error.message}`);
  };

/** The policy is YAML or JSON. Throws a UserError that says what is wrong, and where. */
export function readPolicy(path: string): Policy {
  let text: string;
  try {
    text = readTextFile(path);
  } catch (error) {
    throw new UserError(
      `--audit-policy-file ${path} ${readProblem(error)}: give a file with a Policy of audit.k8s.io/v1, or --audit-policy-file '' --audit-log-path '' for no audit log`,
    );
  }
  try {
    return parsePolicy(JSON.parse(yamlToJson(text, MAX_POLICY_BYTES)));
  } catch (error) {
    throw new UserError(`--audit-policy-file ${path} cannot be used: ${(error as Error).message}`);
  }
}
