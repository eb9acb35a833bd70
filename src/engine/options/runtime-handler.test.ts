import { expect, test } from 'vitest';
import { addRuntimeHandler, isProgram } from './runtime-handler.ts';

test('--runtime-handler may be repeated, and each adds a handler', () => {
  const first = addRuntimeHandler('crun=/bin/sh');
  expect(addRuntimeHandler('kata=io.containerd.kata.v2', first)).toEqual({
    crun: '/bin/sh',
    kata: 'io.containerd.kata.v2',
  });
});

test.each(['crun', 'crun=', 'crun=crun', 'No Name=/x'])('--runtime-handler "%s" is refused', (text) => {
  expect(() => addRuntimeHandler(text)).toThrow(
    `--runtime-handler ${JSON.stringify(text)} is not a valid handler: give NAME=`,
  );
});

test('--runtime-handler does not replace the handler runc', () => {
  expect(() => addRuntimeHandler('runc=/usr/bin/runc')).toThrow(
    '--runtime-handler "runc=/usr/bin/runc": the handler runc exists already, for Pods without a RuntimeClass: give another name',
  );
});

test.each(['/nosuch', '/etc', '/etc/passwd'])(
  '--runtime-handler with %s, which is not a program, is refused',
  (path) => {
    expect(() => addRuntimeHandler(`crun=${path}`)).toThrow(
      `--runtime-handler "crun=${path}": there is no program ${path}: install it, or give the path of another one`,
    );
  },
);

test('a program that only root may see or run is left to the examination by root', () => {
  const denied = () => {
    throw Object.assign(new Error('denied'), { code: 'EACCES' });
  };
  expect([isProgram('/root/bin/crun', false, denied), isProgram('/root/bin/crun', true, denied)]).toEqual([
    true,
    false,
  ]);
  const withMode = (mode: number) => () => ({ isFile: () => true, mode });
  expect([0o700, 0o600].map((mode) => isProgram('/opt/crun', false, withMode(mode)))).toEqual([true, false]);
});
