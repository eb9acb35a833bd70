import { expect, test } from 'vitest';
import { addRuntimeHandler } from './runtime-handler.ts';

test('--runtime-handler may be repeated, and each adds a handler', () => {
  const first = addRuntimeHandler('crun=/bin/sh');
  expect(addRuntimeHandler('kata=io.containerd.kata.v2', first)).toEqual({
    crun: '/bin/sh',
    kata: 'io.containerd.kata.v2',
  });
});

test.each(['crun', 'crun=', 'crun=crun', 'runc=/usr/bin/runc', 'No Name=/x'])(
  '--runtime-handler "%s" is refused',
  (text) => {
    expect(() => addRuntimeHandler(text)).toThrow(
      `--runtime-handler ${JSON.stringify(text)} is not a valid handler: give NAME=`,
    );
  },
);

test.each(['/nosuch', '/etc', '/etc/passwd'])(
  '--runtime-handler with %s, which is not a program, is refused',
  (path) => {
    expect(() => addRuntimeHandler(`crun=${path}`)).toThrow(
      `--runtime-handler "crun=${path}": there is no program ${path}: install it, or give the path of another one`,
    );
  },
);
