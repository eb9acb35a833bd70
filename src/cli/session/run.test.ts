import { expect, test } from 'vitest';
import { podOf } from './run.ts';

test('run creates a Pod that never restarts, with the command as arguments of the image', () => {
  expect(podOf('busybox', ['sh', '-c', 'echo $HOME $(date) $$'], { name: 'a', env: ['A=b=$(C)', 'D='] })).toEqual({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'a' },
    spec: {
      restartPolicy: 'Never',
      containers: [
        {
          name: 'main',
          image: 'busybox',
          imagePullPolicy: 'IfNotPresent',
          args: ['sh', '-c', 'echo $$HOME $$(date) $$$$'],
          env: [
            { name: 'A', value: 'b=$$(C)' },
            { name: 'D', value: '' },
          ],
        },
      ],
    },
  });
  expect(podOf('busybox', [], {})).not.toHaveProperty('spec.containers[0].args');
});

test.each([
  ['busybox', 'busybox-'],
  ['localhost:5000/team/My_App:1.2', 'my-app-'],
  ['alpine@sha256:abc', 'alpine-'],
  ['registry/_', 'run-'],
])('the name of a Pod without --name is derived from the image %s', (image, generateName) => {
  expect(podOf(image, [], {}).metadata).toEqual({ generateName });
});

test.each(['A', '=b'])('the variable %j is refused', (env) => {
  expect(() => podOf('busybox', [], { env: [env] })).toThrow(`--env "${env}" is not a variable: give NAME=VALUE`);
});
