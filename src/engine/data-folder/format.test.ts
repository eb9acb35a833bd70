import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { silentLog } from '../../platform/silent-log.ts';
import { LIFEPOD_VERSION } from '../version.ts';
import { checkDataFormat, DATA_FORMAT_VERSION, dataFormatOf, type Migration, migrate } from './format.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'lifepod-format-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const write = (name: string, text: string): void => writeFileSync(join(folder, name), text);
const read = (name: string): string => readFileSync(join(folder, name), 'utf8');

test('a new data folder gets the newest format, and keeps it', async () => {
  checkDataFormat(folder);
  expect(readdirSync(folder)).toEqual([]);
  await migrate(folder, silentLog);
  await migrate(folder, silentLog);
  checkDataFormat(folder);
  expect(readdirSync(folder)).toEqual(['format-version']);
  expect(read('format-version')).toBe(`${DATA_FORMAT_VERSION}\n`);
});

test('a newer data folder is refused with the versions and what to do, and is not changed', async () => {
  const newer = DATA_FORMAT_VERSION + 1;
  write('format-version', `${newer}\n`);
  expect(() => checkDataFormat(folder)).toThrow(
    `the data folder ${folder} was written by a newer lifepod (format ${newer}), and this one (version ${LIFEPOD_VERSION}) ` +
      `reads formats up to ${DATA_FORMAT_VERSION}: update lifepod, or choose another --data-dir`,
  );
  write('engine.json', '{"version": "7.1.0", "podCidr": 4}');
  expect(() => checkDataFormat(folder)).toThrow(
    /by a newer lifepod \(version 7\.1\.0, format \d+\).*: update lifepod to 7\.1\.0 or newer, or choose another --data-dir$/,
  );
  write('engine.json', JSON.stringify({ version: LIFEPOD_VERSION }));
  expect(() => checkDataFormat(folder)).toThrow(
    `reads formats up to ${DATA_FORMAT_VERSION}: use a later build, which reads format ${newer}, or choose another`,
  );
  write('engine.json', 'no JSON');
  expect(() => checkDataFormat(folder)).toThrow(/by a newer lifepod \(format/);
  await expect(migrate(folder, silentLog)).rejects.toThrow('by a newer lifepod');
  expect(readdirSync(folder).sort()).toEqual(['engine.json', 'format-version']);
  expect(read('format-version')).toBe(`${newer}\n`);
});

test('an invalid version is refused', () => {
  for (const text of ['x', '', '0', '1.5', '-1']) {
    write('format-version', text);
    expect(() => checkDataFormat(folder)).toThrow(/format-version does not contain a version number/);
  }
});

test('a folder with a store and without a version has the first format', () => {
  expect(dataFormatOf(folder)).toBeUndefined();
  mkdirSync(join(folder, 'store'));
  write('store/data.mdb', '');
  expect(dataFormatOf(folder)).toBe(1);
});

/** The steps append their names to the file `steps`. The step with the number `fails` throws. */
function stepsOf(fails: number): Migration[] {
  let count = 0;
  const step = (name: string): void => {
    if (count++ === fails) throw new Error('killed');
    write('steps', `${existsSync(join(folder, 'steps')) ? read('steps') : ''}${name} `);
  };
  const migrationTo = (to: number): Migration => ({
    to,
    what: 'test',
    run: async () => {
      // An older lifepod must refuse a folder that is migrated in part.
      expect(read('format-version')).toBe('4\n');
      step(`begin-${to}`);
      step(`end-${to}`);
    },
  });
  return [migrationTo(2), migrationTo(3), migrationTo(4)];
}

test.each([0, 1, 2, 3])(
  'a migration from format 2 that is interrupted at step %i continues at the next start',
  async (at) => {
    write('format-version', '2\n');
    await expect(migrate(folder, silentLog, stepsOf(at))).rejects.toThrow('killed');
    await migrate(folder, silentLog, stepsOf(Number.POSITIVE_INFINITY));
    const all = read('steps').trim().split(' ');
    expect([...new Set(all)]).toEqual(['begin-3', 'end-3', 'begin-4', 'end-4']);
    // A migration that has completed does not run again.
    expect(all.filter((step) => step === 'end-3')).toHaveLength(1);
    expect(readdirSync(folder).sort()).toEqual(['format-version', 'steps']);
    await migrate(folder, silentLog, stepsOf(0));
    expect(read('format-version')).toBe('4\n');
  },
);
