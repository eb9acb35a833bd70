import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { rootProgram } from '../../platform/programs/typed-program.ts';
import { requireOwnUnits, requireSystemd, writeUnits } from './install-service.ts';
import { serviceLeft } from './uninstall-service.ts';
import { ENGINE_UNIT, SHUTDOWN_UNIT, UNITS } from './units.ts';

const service = { launcher: '/usr/local/bin/lifepod', dataDir: '/var/lib/lifepod', graceSeconds: 30 };

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'lifepod-service-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test('writeUnits writes readable units, and reports a change only when a text changes', () => {
  expect(writeUnits(service, folder)).toBe(true);
  expect(UNITS.map((name) => statSync(join(folder, name)).mode & 0o777)).toEqual([0o644, 0o644]);
  expect(writeUnits(service, folder)).toBe(false);
  expect(writeUnits({ ...service, graceSeconds: 300 }, folder)).toBe(true);
  expect(readFileSync(join(folder, SHUTDOWN_UNIT), 'utf8')).toContain('TimeoutStopSec=360\n');
});

test('requireOwnUnits accepts no units, and those of the data folder', () => {
  requireOwnUnits(service.dataDir, folder);
  writeUnits(service, folder);
  requireOwnUnits(service.dataDir, folder);
});

test('requireOwnUnits refuses a unit that lifepod has not written, and names its path', () => {
  writeFileSync(join(folder, SHUTDOWN_UNIT), '[Unit]\nAfter=lifepod.service\n');
  expect(() => requireOwnUnits(service.dataDir, folder)).toThrow(
    `${folder}/${SHUTDOWN_UNIT} was not written by lifepod: remove the unit, or continue to manage it yourself`,
  );
});

test('requireOwnUnits refuses the units of another data folder, and says how to remove them', () => {
  writeUnits(service, folder);
  expect(() => requireOwnUnits('/srv/other', folder)).toThrow(
    'the service lifepod.service runs the engine of /var/lib/lifepod: give --data-dir /var/lib/lifepod, or remove that ' +
      `service with '${rootProgram()} down --uninstall-service'`,
  );
});

test('lifepod down mentions a service only if it runs the engine of this data folder', () => {
  expect(serviceLeft(service.dataDir, folder)).toBeUndefined();
  writeUnits(service, folder);
  expect(serviceLeft(service.dataDir, folder)).toContain('lifepod down --uninstall-service');
  expect(serviceLeft('/srv/other', folder)).toBeUndefined();
  writeFileSync(join(folder, ENGINE_UNIT), '[Unit]\n');
  expect(serviceLeft(service.dataDir, folder)).toBeUndefined();
});

test('without systemd, the refusal of each option says what to do instead', () => {
  expect(() => requireSystemd('--install-service', '/d', folder)).not.toThrow();
  const none = join(folder, 'none');
  expect(() => requireSystemd('--install-service', '/d', none)).toThrow(
    "systemd does not run this machine, and --install-service is for systemd: let the machine's own service manager run " +
      "'lifepod up --data-dir /d' at its start, and 'lifepod shutdown-node --data-dir /d' before its shutdown",
  );
  expect(() => requireSystemd('--uninstall-service', '/d', none)).toThrow(
    'systemd does not run this machine, and --uninstall-service is for systemd: omit the option; the rest of the command needs no systemd',
  );
});
