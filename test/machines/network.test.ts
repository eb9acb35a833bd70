/**
 * Tests the network of Pods on another kernel than that of the machine that runs the tests: with SCTP, with br_netfilter, and after reboots
 * of the machine. lifepod runs with its private containerd, which enforces NetworkPolicies. Each test continues in the state that the
 * previous one left.
 */
import { expect, test } from 'vitest';
import { bootTests } from './boot-tests.ts';
import { useMachine } from './machine.ts';
import { OUTSIDE_UNIT } from './outside.ts';
import { systemdUnits, writes } from './readme.ts';
import { PRINT_LEFTOVERS, untilUnitReady } from './scripts.ts';
import { serviceTests } from './service-tests.ts';

const machine = useMachine('1.7');

/** Pods take more than the default of 30 s to end on an emulated processor. */
const SLOW = `
mkdir -p /etc/systemd/system/lifepod.service.d /etc/systemd/system/lifepod-shutdown.service.d
${writes(
  '/etc/systemd/system/lifepod.service.d/slow.conf',
  '[Service]\nExecStart=\nExecStart=/usr/local/bin/lifepod up --shutdown-grace-period 300s\n',
)}
${writes('/etc/systemd/system/lifepod-shutdown.service.d/slow.conf', '[Service]\nTimeoutStopSec=400\n')}`;

test("the README's systemd units run lifepod with its private containerd", async () => {
  const script = `${systemdUnits()}
    ${SLOW}
    ${OUTSIDE_UNIT}
    printf 'sctp\\nbr_netfilter\\n' >/etc/modules-load.d/network.conf
    modprobe -a sctp br_netfilter
    systemctl daemon-reload
    systemctl enable --now --quiet outside
    ${untilUnitReady('systemctl enable --now --quiet lifepod lifepod-shutdown')}
    lifepod image load /opt/lifepod/images/busybox.tar`;
  await machine().ok(script, 500);
});

serviceTests(machine);
bootTests(machine);

test('lifepod down leaves nothing behind after the crash of the machine', async () => {
  await machine().ok('lifepod down');
  expect(await machine().ok(PRINT_LEFTOVERS)).toBe('');
});
