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
  it.each(['init', 'app', 'cleanup', 'upload', 'debug'])("an entry's name as any container's: %s", (name) => {
    expect(chooseContainer(pod, name)).toBe(name);
  });

  it('another name is refused', () => {
    expect(() => chooseContainer(pod, 'none')).toThrow('container none is not valid for pod web');
  });

  it('without a name it is the app container, never an entry', () => {
    expect(chooseContainer(pod, undefined)).toBe('app');
  });

  it.each([
    ['cleanup', true],
    ['upload', false],
  ])('attach to %s has the terminal that it was made with', (name, tty) => {
    expect(attachOptions(new URLSearchParams('stdout=1'), pod, name).tty).toBe(tty);
  });
});
