import { expect, test } from 'vitest';
import { failureText } from '../failures.ts';
import { kubeconfigNotes, needsOwnKubeconfig, unknownInvoker } from './own-kubeconfig.ts';

const refusal = (isWanted: boolean, ...words: string[]): string =>
  failureText(needsOwnKubeconfig('/d', {}, isWanted), [...words, '--data-dir', '/d'], false, {});

test('a user who may not read the data folder learns the command with sudo, and how to get a kubeconfig', () => {
  expect(refusal(false, 'why', 'web')).toBe(
    `only root can read the data folder /d: type 'sudo lifepod why web --data-dir /d', or get a kubeconfig of your own with ` +
      `'eval "$(sudo lifepod kubeconfig --data-dir /d)"', or one with fewer rights with 'sudo lifepod kubeconfig --user NAME --data-dir /d'`,
  );
});

test('a user who is refused lifepod kubeconfig learns how to evaluate its output as root', () => {
  expect(refusal(true, 'kubeconfig')).toBe(
    `only root can read the data folder /d: type 'eval "$(sudo lifepod kubeconfig --data-dir /d)"', ` +
      `or 'sudo lifepod kubeconfig --user NAME --data-dir /d' for a kubeconfig with fewer rights`,
  );
});

test('the user of sudo gets a note that names the copy of the kubeconfig, and root gets no note', () => {
  const user = { uid: 1000, gid: 1000, name: 'jane' };
  expect(kubeconfigNotes({ path: '/r/1000.kubeconfig', user }, false)).toEqual([
    'the user jane can use kubectl and lifepod without sudo, with all rights of an administrator, in a shell with KUBECONFIG=/r/1000.kubeconfig',
  ]);
  expect(kubeconfigNotes({ path: '/d/kubeconfig', without: user }, false)).toEqual([
    expect.stringMatching(/^warning: only root can use this kubeconfig, because no copy for jane could be written: /),
  ]);
  expect(kubeconfigNotes({ path: '/d/kubeconfig' }, false)).toEqual([]);
  expect(kubeconfigNotes({ path: '/d/kubeconfig', unknown: 'DOAS_USER=joe' }, false)).toEqual([
    expect.stringMatching(/^warning: only root .* the user of DOAS_USER=joe, who has typed the command$/),
  ]);
});

test('a user whom the machine does not know is named by the variable of the program that has run lifepod', () => {
  expect(unknownInvoker({})).toBeUndefined();
  expect(unknownInvoker({ SUDO_UID: '0', DOAS_USER: 'joe' })).toBeUndefined();
  expect(unknownInvoker({ DOAS_USER: 'root' })).toBeUndefined();
  expect(unknownInvoker({ DOAS_USER: 'joe' })).toBe('DOAS_USER=joe');
  expect(unknownInvoker({ SUDO_UID: '../1' })).toBe('SUDO_UID=../1');
});
