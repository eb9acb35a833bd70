import { describe, expect, it } from 'vitest';
import type { Pod } from '../../api/generated/types.ts';
import { chooseContainer } from '../http/logs.ts';
import { attachOptions } from './options.ts';

const of = (name: string, more: object = {}) => ({ name, image: 'busybox', ...more });
const pod: Pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web' },
  spec: {
    initContainers: [of('init')],
    containers: [of('app')],
    deferContainers: [of('cleanup', { tty: true }), of('upload')],
    ephemeralContainers: [of('debug')],
  },
};

describe('the containers that logs, exec, attach and port-forward accept', () => {
  it.each(['init', 'app', 'cleanup', 'upload', 'debug'])('chooseContainer accepts the container %s', (name) => {
    expect(chooseContainer(pod, name)).toBe(name);
  });

  it('chooseContainer refuses an unknown name', () => {
    expect(() => chooseContainer(pod, 'none')).toThrow('container none is not valid for pod web');
  });

  it('chooseContainer defaults to the app container, never a defer container', () => {
    expect(chooseContainer(pod, undefined)).toBe('app');
  });

  it.each([
    ['cleanup', true],
    ['upload', false],
  ])('attach to the container %s has a terminal if the container has one', (name, tty) => {
    expect(attachOptions(new URLSearchParams('stdout=1'), pod, name).tty).toBe(tty);
  });
});
