import { expect, test } from 'vitest';
import { checkPodGroups, checkResolvConf } from './engine-node.ts';

const containerRuntimeEndpoint = 'unix:///run/c.sock';

test.each([
  [10, 'systemd', undefined],
  [
    10,
    undefined,
    'the runtime at unix:///run/c.sock does not report its cgroup driver; start with --pod-pids-limit -1',
  ],
  [10, 'cgroupfs', undefined],
  [-1, 'systemd', undefined],
] as const)('--pod-pids-limit %i with the cgroup driver %s causes the error: $2', (podPidsLimit, driver, cause) => {
  const check = () => checkPodGroups({ podPidsLimit, containerRuntimeEndpoint }, driver);
  if (cause === undefined) expect(check).not.toThrow();
  else expect(check).toThrow(cause);
});

test('--resolv-conf is refused if the file does not exist, is a folder or a device', () => {
  for (const [resolvConf, problem] of [
    ['/nonexistent/resolv.conf', 'does not exist'],
    ['/etc', 'is a folder'],
    ['/dev/zero', 'cannot be read: it is not a regular file'],
  ] as const)
    expect(() => checkResolvConf({ resolvConf })).toThrow(
      `--resolv-conf ${resolvConf} ${problem}: give an existing file, or '' for the machine's configuration`,
    );
  for (const resolvConf of ['', '/etc/hosts']) expect(() => checkResolvConf({ resolvConf })).not.toThrow();
});
