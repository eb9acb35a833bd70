import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { lockForStart } from '../engine/data-folder/lock-line.ts';
import { UserError } from '../platform/files.ts';
import { loadImages, requireArchive } from './image.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'lifepod-image-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

test('a file that can be read is accepted as an archive', () => {
  writeFileSync(join(folder, 'image.tar'), '');
  requireArchive(join(folder, 'image.tar'));
});

test('a folder and a missing file are refused as archives', () => {
  const advice = "give an archive such as 'docker save' writes";
  expect(() => requireArchive(folder)).toThrow(new UserError(`the file ${folder} is a folder: ${advice}`));
  const file = join(folder, 'none');
  expect(() => requireArchive(file)).toThrow(new UserError(`the file ${file} does not exist: ${advice}`));
});

test('a closed pipe of the shell is refused with the command that reads standard input', () => {
  vi.stubEnv('SUDO_UID', '1000');
  expect(() => requireArchive('/dev/fd/9999')).toThrow(
    /^the file \/dev\/fd\/9999 does not exist, because sudo closes .*: type 'COMMAND \| sudo \S+ image load -'$/,
  );
  vi.unstubAllEnvs();
});

test('a folder with an OCI image layout is refused with the command that makes an archive of it', () => {
  writeFileSync(join(folder, 'oci-layout'), '{}');
  expect(() => requireArchive(folder)).toThrow(
    new UserError(
      `${folder} is a folder with an OCI image layout: make an archive of it with 'tar -C ${folder} -cf FILE .', and load FILE`,
    ),
  );
});

test('image load waits for an engine that is starting', async () => {
  const lock = lockForStart(folder, 'engine');
  const loading = loadImages(folder, [join(folder, 'none')]);
  lock.release();
  await expect(loading).rejects.toThrow('lifepod is not running in');
});
