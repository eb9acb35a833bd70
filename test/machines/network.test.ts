/**
 * Tests the network of Pods on a kernel other than that of the machine that runs the tests: with SCTP, with br_netfilter, and after reboots
 * of the machine. lifepod runs with its private containerd, which enforces NetworkPolicies. Each test continues in the state that the
 * previous one left.
 */
import { expect, test } from 'vitest';
import { bootTests } from './boot-tests.ts';
import { useMachine } from './machine.ts';
import { OUTSIDE_UNIT } from './outside.ts';
import { PRINT_LEFTOVERS } from './scripts.ts';
import { serviceTests } from './service-tests.ts';

const machine = useMachine('1.7');

test('lifepod up --install-service runs lifepod with its private containerd', async () => {
  const script = `
    ${OUTSIDE_UNIT}
    printf 'sctp\\nbr_netfilter\\n' >/etc/modules-load.d/network.conf
    modprobe -a sctp br_netfilter
    systemctl daemon-reload
    systemctl enable --now --quiet outside
    # Pods take more than the default of 30 s to end on an emulated processor.
    lifepod up --install-service --shutdown-grace-period 300s
    lifepod image load /opt/lifepod/images/busybox.tar`;
  await machine().ok(script, 580);
});

serviceTests(machine);
bootTests(machine);

test('lifepod down --uninstall-service leaves nothing behind after the crash of the machine', async () => {
  // sudo sets these variables for the user who types the commands.
  const printed = await machine().ok(`export SUDO_UID=65534 SUDO_GID=65534 SUDO_USER=nobody
    lifepod kubeconfig
    lifepod down --uninstall-service`);
  const [, copy = 'no copy'] = /^export KUBECONFIG=(.*)$/m.exec(printed) ?? [];
  expect(printed).toContain(`\n${copy} is removed: type 'unset KUBECONFIG' where the variable names this file\n`);
  expect(await machine().ok("systemctl list-unit-files --no-legend 'lifepod*' || true")).toBe('');
  expect(await machine().ok(PRINT_LEFTOVERS)).toBe('');
});
