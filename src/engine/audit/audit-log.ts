/** Opens the audit log of the engine. Loads the code of the audit log only if the settings have one. */

import type { Audit } from '../../apiserver/audit/audit.ts';
import type { Metrics } from '../../platform/metrics.ts';
import type { Platform } from '../../platform/platform.ts';
import { USER_AGENT } from '../../platform/version/version.ts';
import type { ResourceBackend } from '../../ports/backend.ts';
import type { Settings } from '../settings.ts';
import { auditSettings } from './audit-settings.ts';

export interface AuditLog {
  audit?: Audit;
  /** Returns a backend that records the calls of components; without an audit log, `backend` itself. */
  record<Backend extends ResourceBackend>(backend: Backend): Backend;
}

const NO_LOG: AuditLog = { record: (backend) => backend };

/**
 * Rejects with a UserError if the audit policy cannot be read or is not valid. Does nothing without an audit log, or if the engine is
 * started only to end its Pods.
 */
export async function checkAuditPolicy(settings: Settings): Promise<void> {
  const wanted = auditSettings(settings);
  if (wanted === undefined || endsPodsOnly(settings)) return;
  const { readPolicy } = await import('./open-audit.ts');
  readPolicy(wanted.policyFile);
}

/**
 * Rejects with a UserError if the log cannot be opened, except if the engine is started only to end its Pods: a missing file must not make
 * `lifepod down` fail.
 */
export async function openAuditLog(settings: Settings, platform: Platform, metrics: Metrics): Promise<AuditLog> {
  const wanted = auditSettings(settings);
  if (wanted === undefined) return NO_LOG;
  const { openAudit } = await import('./open-audit.ts');
  const { auditedCalls } = await import('./audited-calls.ts');
  try {
    const audit = await openAudit(wanted, platform, metrics);
    return { audit, record: (backend) => auditedCalls(backend, audit, USER_AGENT) };
  } catch (error) {
    if (!endsPodsOnly(settings)) throw error;
    platform.log.error('requests are not audited', { error: (error as Error).message });
    return NO_LOG;
  }
}

const endsPodsOnly = ({ recordedPort }: Settings): boolean => recordedPort !== undefined;
