import { expect, test } from 'vitest';
import { createMetrics } from '../../platform/metrics.ts';
import { systemTimers } from '../../platform/node-js.ts';
import { silentLog } from '../../platform/silent-log.ts';
import type { ResourceBackend } from '../../ports/backend.ts';
import { type EngineRecord, resolveSettings, type UpOptions } from '../settings.ts';
import { checkAuditPolicy, openAuditLog } from './audit-log.ts';

const platform = { timers: systemTimers(), log: silentLog };
const backend = {} as ResourceBackend;
const record: EngineRecord = {
  version: '0.1.0',
  port: 6443,
  podCidr: '10.222.0.0/16',
  serviceCidr: '10.96.0.0/16',
  nodeName: 'n',
  auditPolicyFile: '/none/policy.yaml',
  auditLogPath: '/none/audit.log',
  state: 'up',
};
const settingsOf = (more: Partial<UpOptions> = {}) => resolveSettings({ dataDir: '/d', ...more }, record);

test('without options the backend of the components is unchanged', async () => {
  const settings = settingsOf({ auditPolicyFile: '', auditLogPath: '' });
  await checkAuditPolicy(settings);
  const { audit, record: recorded } = await openAuditLog(settings, platform, createMetrics());
  expect(audit).toBeUndefined();
  expect(recorded(backend)).toBe(backend);
});

test('a missing policy prevents the start, but not that of an engine that only ends its Pods', async () => {
  const message = '--audit-policy-file /none/policy.yaml does not exist: give a file with a Policy';
  await expect(checkAuditPolicy(settingsOf())).rejects.toThrow(message);
  await expect(openAuditLog(settingsOf(), platform, createMetrics())).rejects.toThrow(message);
  const ending = settingsOf({ anyPort: true });
  await checkAuditPolicy(ending);
  expect((await openAuditLog(ending, platform, createMetrics())).audit).toBeUndefined();
});
