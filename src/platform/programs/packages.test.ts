import { expect, test, vi } from 'vitest';
import { missingProgram, packageOf } from './packages.ts';

test.each([
  { uid: undefined, sudo: process.geteuid?.() === 0 ? '' : 'sudo ' },
  { uid: '1000', sudo: 'sudo ' },
])(
  'the message about a missing program contains the command that installs its package, for a SUDO_UID of $uid',
  ({ uid, sudo }) => {
    for (const name of ['DOAS_USER', 'PKEXEC_UID']) vi.stubEnv(name, undefined);
    vi.stubEnv('SUDO_UID', uid);
    expect(missingProgram('umount')).toBe(`the command 'umount' is missing: run '${sudo}apt-get install mount'`);
    expect(missingProgram('/usr/sbin/nft')).toBe(
      `the command '/usr/sbin/nft' is missing: run '${sudo}apt-get install nftables'`,
    );
    expect(missingProgram('other')).toBe(`the command 'other' is missing: install it`);
    expect(packageOf('other')).toBeUndefined();
    vi.unstubAllEnvs();
  },
);
