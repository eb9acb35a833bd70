import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type EngineRecord, readEngineRecord, resolveSettings, writeEngineRecord } from './settings.ts';

const record: EngineRecord = {
  version: '0.1.0',
  port: 7000,
  podCidr: '10.1.0.0/16',
  serviceCidr: '10.2.0.0/16',
  nodeName: 'node-1',
  state: 'up',
};

test('a new data folder gets the defaults', () => {
  expect(resolveSettings({ dataDir: '/d', nodeName: 'n' }, undefined)).toEqual({
    dataDir: '/d',
    port: 6443,
    podCidr: '10.222.0.0/16',
    serviceCidr: '10.96.0.0/16',
    nodeName: 'n',
    logLevel: 'info',
  });
});

test('what the data folder remembers holds where no option is given; the port may change', () => {
  expect(resolveSettings({ dataDir: '/d' }, record)).toMatchObject({ port: 7000, podCidr: '10.1.0.0/16' });
  expect(resolveSettings({ dataDir: '/d', port: 0 }, record).port).toBe(0);
});

test.each([
  [{ podCidr: '10.3.0.0/16' }, 'the data folder /d was made with --pod-cidr 10.1.0.0/16: leave'],
  [{ serviceCidr: '10.3.0.0/16' }, 'the data folder /d was made with --service-cidr 10.2.0.0/16: leave'],
  [{ nodeName: 'other' }, 'the data folder /d was made with --node-name node-1: leave'],
])('%j is refused for a data folder that was made otherwise', (options, message) => {
  expect(() => resolveSettings({ dataDir: '/d', ...options }, record)).toThrow(message);
});

test.each([
  [{ port: 70000 }, '--port 70000 is not a port'],
  [{ nodeName: 'Not A Name' }, `--node-name "Not A Name" is not a node's name: `],
  [{ podCidr: '10.0.0.0/30' }, '--pod-cidr 10.0.0.0/30 has an unusable size'],
  [{ podCidr: '10.96.1.0/24' }, '--pod-cidr 10.96.1.0/24 and --service-cidr 10.96.0.0/16 overlap'],
])('%j is refused', (options, message) => {
  expect(() => resolveSettings({ dataDir: '/d', ...options }, undefined)).toThrow(message);
});

test('the record is read as it was written; a damaged one is refused', () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'lifepod-settings-'));
  try {
    expect(readEngineRecord(dataDir)).toBeUndefined();
    writeEngineRecord(dataDir, record);
    expect(readEngineRecord(dataDir)).toEqual(record);
    writeFileSync(join(dataDir, 'engine.json'), '{');
    expect(() => readEngineRecord(dataDir)).toThrow(/is damaged/);
  } finally {
    rmSync(dataDir, { recursive: true });
  }
});
