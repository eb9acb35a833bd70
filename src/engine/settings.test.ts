import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { Command } from 'commander';
import { expect, test } from 'vitest';
import { resolveAuditOptions } from './audit/audit-settings.ts';
import { resolveAuthenticationOptions } from './authentication/authentication-settings.ts';
import { DEFAULT_IMAGE_SETTINGS } from './image-settings.ts';
import { resolveNodeOptions } from './node-settings.ts';
import { resolveApiOptions } from './options/api-settings.ts';
import { parseRecordLimits } from './options/record-settings.ts';
import {
  dataDirOption,
  type EngineRecord,
  readEngineRecord,
  recordOf,
  resolveSettings,
  usesPrivateContainerd,
  writeEngineRecord,
} from './settings.ts';

const record: EngineRecord = {
  version: '0.1.0',
  port: 7000,
  podCidr: '10.1.0.0/16',
  serviceCidr: '10.2.0.0/16',
  nodeName: 'node-1',
  state: 'up',
};

test('symbolic links in the given and in the default data folder are resolved', () => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'lifepod-settings-')));
  try {
    mkdirSync(join(folder, 'disk'));
    symlinkSync('disk', join(folder, 'link'));
    const command = () => new Command().addOption(dataDirOption(join(folder, 'link')));
    expect(command().parse([], { from: 'user' }).opts()).toEqual({ dataDir: join(folder, 'disk') });
    expect(
      command()
        .parse(['--data-dir', join(folder, 'link/new')], { from: 'user' })
        .opts(),
    ).toEqual({
      dataDir: join(folder, 'disk/new'),
    });
    expect(command().helpInformation()).toContain(`"${join(folder, 'link')}"`);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('an engine that is started only to terminate Pods uses any free port and keeps the recorded port', () => {
  expect(resolveSettings({ dataDir: '/d', anyPort: true }, record)).toMatchObject({ port: 0, recordedPort: 7000 });
  expect(resolveSettings({ dataDir: '/d' }, record)).toMatchObject({ port: 7000 });
  expect(resolveSettings({ dataDir: '/d', port: 0 }, record)).not.toHaveProperty('recordedPort');
});

test('settings that are neither given nor recorded have their defaults', () => {
  expect(resolveSettings({ dataDir: '/d', nodeName: 'n' }, undefined)).toEqual({
    dataDir: '/d',
    port: 6443,
    podCidr: '10.222.0.0/16',
    serviceCidr: '10.96.0.0/16',
    nodeName: 'n',
    recordAge: '24h',
    recordSize: '64Mi',
    maxGracePeriodExtension: 3600,
    podPidsLimit: -1,
    runtimeHandlers: {},
    ...resolveApiOptions({}),
    ...DEFAULT_IMAGE_SETTINGS,
    ...resolveNodeOptions({}, undefined),
    ...resolveAuthenticationOptions({}),
    ...resolveAuditOptions({}),
    encryptionProviderConfig: '',
    logLevel: 'info',
  });
});

test('recorded settings apply if no option is given, and only the port may change', () => {
  expect(resolveSettings({ dataDir: '/d' }, record)).toMatchObject({ port: 7000, podCidr: '10.1.0.0/16' });
  expect(resolveSettings({ dataDir: '/d', port: 0 }, record).port).toBe(0);
});

test('two ranges of Pods are kept, and apply at the next start', () => {
  const podCidr = '10.1.0.0/16,fd00:10:1::/64';
  expect(resolveSettings({ dataDir: '/d', podCidr }, undefined).podCidr).toBe(podCidr);
  expect(resolveSettings({ dataDir: '/d' }, { ...record, podCidr }).podCidr).toBe(podCidr);
});

test('a second range of Services may be added to a data folder', () => {
  const serviceCidr = '10.2.0.0/16,fd00:10:2::/112';
  expect(resolveSettings({ dataDir: '/d', serviceCidr }, record).serviceCidr).toBe(serviceCidr);
});

test.each([
  ['--pod-cidr', { podCidr: '10.3.0.0/16' }, 'the data folder /d was created with --pod-cidr 10.1.0.0/16: omit'],
  [
    '--pod-cidr with a second range',
    { podCidr: '10.1.0.0/16,fd00::/64' },
    'the data folder /d was created with --pod-cidr 10.1.0.0/16: omit the option or choose another --data-dir',
  ],
  [
    '--service-cidr',
    { serviceCidr: '10.3.0.0/16' },
    'the data folder /d was created with --service-cidr 10.2.0.0/16: omit',
  ],
  [
    '--service-cidr of two ranges',
    { serviceCidr: '10.3.0.0/16,fd00::/112' },
    'the data folder /d was created with --service-cidr 10.2.0.0/16: omit',
  ],
  ['--node-name', { nodeName: 'other' }, 'the data folder /d was created with --node-name node-1: omit'],
])('%s is refused for a data folder that was created with another value', (_, options, message) => {
  expect(() => resolveSettings({ dataDir: '/d', ...options }, record)).toThrow(message);
});

test.each([
  [{ port: 70000 }, '--port 70000 is not a port'],
  [{ maxPods: '0' }, '--max-pods 0 would let no Pod run: give 1 or more'],
  [
    { containerRuntimeEndpoint: 'c.sock' },
    '"c.sock" is not a socket of a runtime: give its path, such as unix:///run/',
  ],
  [{ containerRuntimeEndpoint: 'tcp://h:1' }, '--container-runtime-endpoint "tcp://h:1" is not a socket of a runtime'],
  [{ recordAge: 'a day' }, '--record-age "a day" is not a valid age of records: give one minute or more, such as 30m'],
  [{ recordAge: '' }, '--record-age "" is not a valid age'],
  [{ recordAge: '59s' }, '--record-age "59s" is not a valid age'],
  [{ recordSize: 'big' }, '--record-size "big" is not a valid size of records: give 1Mi or more, such as 64Mi'],
  [{ recordSize: '1000k' }, '--record-size "1000k" is not a valid size'],
  [{ maxGracePeriodExtension: Number.NaN }, '--max-grace-period-extension NaN is not a valid time: give whole seconds'],
  [{ maxGracePeriodExtension: -1 }, '--max-grace-period-extension -1 is not a valid time'],
  [
    { runtimeHandler: { crun: '/usr/bin/crun' }, containerRuntimeEndpoint: 'unix:///run/c.sock' },
    '--runtime-handler is for the private containerd: configure the handler in the runtime at unix:///run/c.sock',
  ],
  [{ bindAddress: 'eth0' }, '--bind-address "eth0" is not an address on which the API can listen'],
  [{ tlsSan: 'a b' }, '--tls-san "a b" is neither a host name nor an address'],
  [{ podPidsLimit: -2 }, '--pod-pids-limit -2 is too low to start a Pod'],
  [{ podPidsLimit: 7 }, '--pod-pids-limit 7 is too low to start a Pod: give 8 or more, or -1 for no limit'],
  [{ nodeName: 'Not A Name' }, `--node-name "Not A Name" is not a valid node name: `],
  [{ podCidr: 'fd00::/64,10.1.0.0/16' }, 'is not an IPv4 network followed by an IPv6 network: give two such as'],
  [{ podCidr: '10.0.0.0/30' }, '--pod-cidr 10.0.0.0/30 has an unusable size'],
  [
    { serviceCidr: '10.96.0.0/16,10.97.0.0/16' },
    'is not an IPv4 network followed by an IPv6 network: give two such as',
  ],
  [{ serviceCidr: '10.96.0.0/16,fd00::/63' }, '--service-cidr fd00::/63 has an unusable size'],
  [
    { podCidr: '10.1.0.0/16,fd00::/64', serviceCidr: '10.96.0.0/16,fd00::/112' },
    '--pod-cidr 10.1.0.0/16,fd00::/64 and --service-cidr 10.96.0.0/16,fd00::/112 overlap: choose ranges that do not',
  ],
  [{ podCidr: '10.96.1.0/24', serviceCidr: '10.96.0.0/16,fd00::/112' }, 'overlap'],
  [{ podCidr: '10.96.1.0/24' }, '--pod-cidr 10.96.1.0/24 and --service-cidr 10.96.0.0/16 overlap'],
])('the options %j are refused: %s', (options, message) => {
  expect(() => resolveSettings({ dataDir: '/d', ...options }, undefined)).toThrow(message);
});

test.each([
  ['1m', '1Mi', { ageMillis: 60_000, bytes: 2 ** 20 }],
  ['1d2h3m4s', '2Gi', { ageMillis: 93_784_000, bytes: 2 ** 31 }],
])('--record-age %s and --record-size %s are valid', (age, size, limits) => {
  expect(parseRecordLimits(age, size)).toEqual(limits);
});

test('the engine record is read as it was written, and a damaged one is refused', () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'lifepod-settings-'));
  try {
    expect(readEngineRecord(dataDir)).toBeUndefined();
    writeEngineRecord(dataDir, record);
    expect(readEngineRecord(dataDir)).toEqual(record);
    expect(usesPrivateContainerd({ dataDir })).toBe(record.containerRuntimeEndpoint === undefined);
    writeEngineRecord(dataDir, { ...record, containerRuntimeEndpoint: 'unix:///run/c.sock' });
    expect(usesPrivateContainerd({ dataDir })).toBe(false);
    expect(usesPrivateContainerd({ dataDir, containerRuntimeEndpoint: '' })).toBe(true);
    writeFileSync(join(dataDir, 'engine.json'), '{');
    expect(usesPrivateContainerd({ dataDir })).toBe(true);
    expect(() => readEngineRecord(dataDir)).toThrow(/is damaged/);
  } finally {
    rmSync(dataDir, { recursive: true });
  }
});

test.each(['/run/c.sock', 'unix:/run/c.sock', 'unix:///run/c.sock'])(
  'the endpoint of the runtime may be %s',
  (containerRuntimeEndpoint) => {
    const settings = resolveSettings({ dataDir: '/d', containerRuntimeEndpoint }, undefined);
    expect(settings.containerRuntimeEndpoint).toBe('unix:///run/c.sock');
  },
);

test('an empty endpoint of the runtime returns to a private containerd, which is recorded', () => {
  const former = { ...record, containerRuntimeEndpoint: 'unix:///run/c.sock' };
  const given = resolveSettings({ dataDir: '/d', containerRuntimeEndpoint: '' }, former);
  expect(given.containerRuntimeEndpoint).toBeUndefined();
  expect(resolveSettings({ dataDir: '/d' }, recordOf(given, 7000)).containerRuntimeEndpoint).toBeUndefined();
  const runtimeHandler = { crun: '/usr/bin/crun' };
  expect(() => resolveSettings({ dataDir: '/d', containerRuntimeEndpoint: '', runtimeHandler }, former)).not.toThrow();
});

test.each<Partial<EngineRecord>>([{ maxPods: '0' }, { podPidsLimit: 3 }, { evictionMaxPodGracePeriod: '' }])(
  'the recorded option %j of an older lifepod still works',
  (recorded) => {
    expect(recordOf(resolveSettings({ dataDir: '/d' }, { ...record, ...recorded }), 7000)).toMatchObject(recorded);
  },
);

test('the path of the encryption configuration becomes absolute, is recorded, and an empty one returns to the own key', () => {
  const dataDir = '/data';
  const given = resolveSettings({ dataDir, encryptionProviderConfig: 'keys.yaml' }, record);
  expect(given.encryptionProviderConfig).toBe(resolve('keys.yaml'));
  const recorded = recordOf(given, 7000);
  expect(resolveSettings({ dataDir }, recorded).encryptionProviderConfig).toBe(resolve('keys.yaml'));
  expect(resolveSettings({ dataDir, encryptionProviderConfig: '' }, recorded).encryptionProviderConfig).toBe('');
  expect(resolveSettings({ dataDir }, record).encryptionProviderConfig).toBe('');
});
