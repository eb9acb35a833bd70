import { Command } from 'commander';
import { expect, test } from 'vitest';
import {
  type AuditOptions,
  addAuditOptions,
  auditFlags,
  auditSettings,
  resolveAuditOptions,
} from './audit-settings.ts';

const parsed = (...args: string[]): AuditOptions =>
  addAuditOptions(new Command().exitOverride().configureOutput({ writeErr: () => undefined }))
    .parse(args, { from: 'user' })
    .opts();
const BOTH = ['--audit-policy-file', '/policy.yaml', '--audit-log-path', '/audit.log'];
const settingsOf = (...args: string[]) => auditSettings(resolveAuditOptions(parsed(...args)));

test('without options there is no audit log', () => {
  expect(settingsOf()).toBeUndefined();
});

test('the options have the defaults of kube-apiserver', () => {
  expect(settingsOf(...BOTH)).toEqual({
    policyFile: '/policy.yaml',
    path: '/audit.log',
    mode: 'blocking',
    format: 'json',
    maxBytes: 100 * 1024 * 1024,
    maxBackups: 0,
    maxAgeDays: 0,
    maxEventBytes: undefined,
  });
});

test('all options can be set, relative paths become absolute, and - is standard output', () => {
  const more = [
    '--audit-log-maxage=7',
    '--audit-log-maxbackup=3',
    '--audit-log-maxsize=5',
    '--audit-log-format=legacy',
  ];
  expect(settingsOf(...BOTH, ...more, '--audit-log-mode=batch', '--audit-log-truncate-enabled')).toMatchObject({
    mode: 'batch',
    format: 'legacy',
    maxBytes: 5 * 1024 * 1024,
    maxBackups: 3,
    maxAgeDays: 7,
    maxEventBytes: 102_400,
  });
  const size = ['--audit-log-truncate-enabled', 'true', '--audit-log-truncate-max-event-size', '2000'];
  expect(settingsOf(...BOTH, ...size)?.maxEventBytes).toBe(2000);
  expect(settingsOf('--audit-policy-file', 'p', '--audit-log-path', 'l')).toMatchObject({
    policyFile: `${process.cwd()}/p`,
    path: `${process.cwd()}/l`,
  });
  expect(settingsOf('--audit-policy-file', 'p', '--audit-log-path', '-')?.path).toBe('-');
});

test('values are recorded, passed to an engine in the background, and removed by empty ones', () => {
  const options = parsed(...BOTH, '--audit-log-truncate-enabled', '--audit-log-mode', 'batch');
  const resolved = resolveAuditOptions(options);
  expect(resolveAuditOptions({}, resolved)).toEqual(resolved);
  const args = auditFlags(options).flatMap(([flag, value]) => (value === undefined ? [] : [flag, value]));
  expect(parsed(...args)).toEqual(options);
  const without = parsed('--audit-policy-file', '', '--audit-log-path', '');
  expect(auditSettings(resolveAuditOptions(without, resolved))).toBeUndefined();
});

test.each<[string[], string]>([
  [
    ['--audit-policy-file', '/p'],
    '--audit-policy-file and --audit-log-path belong together: give both, or none of them',
  ],
  [['--audit-log-path', '/l'], '--audit-policy-file and --audit-log-path belong together: give both, or none of them'],
  [['--audit-log-mode', 'async'], '--audit-log-mode async is not valid: give batch, blocking or blocking-strict'],
  [['--audit-log-format', 'yaml'], '--audit-log-format yaml is not valid: give json or legacy'],
  [['--audit-log-maxage', '7d'], '--audit-log-maxage 7d is not valid: give a whole number, 0 or more'],
  [['--audit-log-maxbackup', '-1'], '--audit-log-maxbackup -1 is not valid: give a whole number, 0 or more'],
  [['--audit-log-maxsize', '1.5'], '--audit-log-maxsize 1.5 is not valid: give a whole number, 0 or more'],
  [['--audit-log-truncate-enabled', 'yes'], '--audit-log-truncate-enabled yes is not valid: give true or false'],
  [
    ['--audit-log-truncate-max-event-size', '0'],
    '--audit-log-truncate-max-event-size 0 is not valid: give a whole number, 1 or more',
  ],
  [
    ['--audit-log-truncate-max-batch-size', '1000'],
    '--audit-log-truncate-max-batch-size is smaller than --audit-log-truncate-max-event-size: give the same size or more',
  ],
])('the options %j are refused: %s', (args, message) => {
  expect(() => settingsOf(...args)).toThrow(message);
});
