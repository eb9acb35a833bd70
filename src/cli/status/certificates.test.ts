import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { loadOrCreatePki } from '../../apiserver/pki/pki.ts';
import { rootCommand } from '../../platform/programs/typed-program.ts';
import { certificatesJson, certificateTable, certificateTroubles, readCertificates } from './certificates.ts';
import { checkCertificates } from './certs.ts';

const NOW = Date.UTC(2026, 0, 31, 9, 30);
const DAY = 24 * 60 * 60 * 1000;

let dataDir: string;
beforeEach(async () => {
  dataDir = mkdtempSync(join(tmpdir(), 'lifepod-certs-'));
  onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }));
  await loadOrCreatePki(dataDir, { hostnames: [], ips: [], now: NOW });
});

test('the table shows when each certificate expires and is renewed', () => {
  const [headings, ca, server, admin] = certificateTable(readCertificates(dataDir), NOW + 5 * 60_000);
  expect(headings).toBe('CERTIFICATE  EXPIRES               RESIDUAL TIME  RENEWAL DUE');
  expect(ca).toBe('ca           2036-01-29 09:30 UTC  9y             2034-01-29 09:30 UTC');
  expect(server).toMatch(/^apiserver {4}2027-01-31 09:25 UTC {2}364d {11}2026-1[0-2]-\d\d \d\d:\d\d UTC$/);
  expect(admin).toMatch(/^admin {8}2027-01-31 09:25 UTC {2}364d {11}/);
  expect(certificateTable(readCertificates(dataDir), NOW + 400 * DAY)[2]).toContain('  expired  ');
});

test('the JSON has the same times as the table, and says which certificates have expired', () => {
  const [ca, server, ...others] = (
    certificatesJson(dataDir, readCertificates(dataDir), NOW + 400 * DAY) as { certificates: object[] }
  ).certificates;
  expect(ca).toEqual({
    name: 'ca',
    expires: '2036-01-29T09:30:00Z',
    expired: false,
    renewalDue: '2034-01-29T09:30:00Z',
  });
  expect(server).toMatchObject({ name: 'apiserver', expires: '2027-01-31T09:25:00Z', expired: true });
  expect(others).toHaveLength(1);
});

test.each<[number, string[]]>([
  [300, []],
  [
    350,
    ['apiserver', 'admin'].map(
      (name) =>
        `the certificate ${name} expires on 2027-01-31 09:25 UTC and was not renewed: see the log of lifepod, or restart it`,
    ),
  ],
  [
    366,
    ['apiserver', 'admin'].map(
      (name) =>
        `the certificate ${name} has expired on 2027-01-31 09:25 UTC and was not renewed: see the log of lifepod, or restart it`,
    ),
  ],
])('after %i days without an engine, the status reports %j', (days, troubles) => {
  expect(certificateTroubles(dataDir, NOW + days * DAY)).toEqual(troubles);
});

test('missing and damaged certificates are reported with what to do', () => {
  writeFileSync(join(dataDir, 'pki', 'admin.crt'), 'x');
  expect(() => readCertificates(dataDir)).toThrow(/^a certificate in .*pki is damaged \(.*\): restart lifepod/);
  expect(certificateTroubles(dataDir, NOW)).toEqual([expect.stringMatching(/is damaged/)]);
  rmSync(join(dataDir, 'pki', 'admin.crt'));
  expect(() => readCertificates(dataDir)).toThrow(
    `there is no certificate admin in ${dataDir}: '${rootCommand('up', dataDir)}' creates it`,
  );
});

test('certs check in a folder in which no engine has run says so', () => {
  const folder = mkdtempSync(join(tmpdir(), 'lifepod-certificates-'));
  try {
    expect(() => checkCertificates(folder)).toThrow(`lifepod has never run in ${folder}: start it with `);
    expect(() => checkCertificates(join(folder, 'none'))).toThrow(
      `is not running: there is no folder ${folder}/none: `,
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('certs check names the data folder in JSON, and on standard error if its engine is not running', () => {
  const writes = [process.stdout, process.stderr].map((stream) => vi.spyOn(stream, 'write').mockReturnValue(true));
  try {
    checkCertificates(dataDir, 'json');
    const [stdout, stderr] = writes.map(({ mock }) => mock.calls.map(([text]) => text).join(''));
    expect(JSON.parse(stdout ?? '')).toMatchObject({ dataDir, certificates: [{ name: 'ca' }, {}, {}] });
    expect(stderr).toBe(`lifepod: these are the certificates of ${dataDir}, whose engine is not running\n`);
  } finally {
    for (const write of writes) write.mockRestore();
  }
});
