import { expect, test } from 'vitest';
import type { Pod } from '../../src/api/generated/types.ts';
import { pod } from '../support/manifests.ts';
import type { Machine } from './machine.ts';
import { limitTest, outOfMemoryTest } from './pod-tests.ts';
import {
  apply,
  ENDPOINT,
  PIDS_LIMIT,
  PRINT_LEFTOVERS,
  traceOf,
  UNTIL_BOOTED,
  untilReady,
  wholeLife,
} from './scripts.ts';

const STATIC = 'resident-machine';

export function endTests(machine: () => Machine): void {
  test('a delete runs PreExit and PostExit entries in order', async () => {
    await machine().ok(`: >${traceOf('life')}; kubectl delete pod life >/dev/null`);
    expect(await machine().ok(`cat ${traceOf('life')}`)).toBe('before\nstop\nafter\n');
  });

  test('a reboot ends Pods gracefully and starts static Pods again', async () => {
    const resident = JSON.stringify(pod('resident'));
    await machine().ok(`
      echo '${resident}' >/var/lib/lifepod/manifests/resident.json
      ${apply(wholeLife('last'))}
      ${untilReady('last')}
      kubectl wait --for=create pod/${STATIC} --timeout=240s >/dev/null
      ${untilReady(STATIC)}`);
    const started = `kubectl get pod ${STATIC} -o jsonpath='{.status.startTime}'`;
    const before = await machine().ok(started);
    await machine().reboot('orderly');
    await machine().ok(UNTIL_BOOTED);
    expect(await machine().ok(`cat ${traceOf('last')}`)).toBe('init\napp\nbefore\nstop\nafter\n');
    const { status } = JSON.parse(await machine().ok('kubectl get pod last -o json')) as Pod;
    expect([status?.phase, status?.reason]).toEqual(['Failed', 'Terminated']);
    await machine().ok(untilReady(STATIC));
    expect(await machine().ok(started)).not.toBe(before);
    // The unit that ends the Pods starts only after the engine listens, so the test waits until systemd has started all units.
    await machine().ok('timeout 240 systemctl is-system-running --wait >/dev/null || true');
    expect(await machine().ok('systemctl is-active lifepod lifepod-shutdown containerd')).toBe(
      'active\nactive\nactive\n',
    );
  });

  test('lifepod down leaves nothing behind', async () => {
    await machine().ok(`${apply(wholeLife('gone'))}\n${untilReady('gone')}\nlifepod down`);
    expect(await machine().ok(PRINT_LEFTOVERS)).toBe('');
    expect(await machine().ok('ctr -n k8s.io containers ls -q')).toBe('');
    expect(await machine().ok(`cat ${traceOf('gone')}`)).toBe('init\napp\nbefore\nstop\nafter\n');
  });

  test('the engine starts on the same containerd with the cgroupfs driver', async () => {
    await machine().ok(`
      lifepod down --uninstall-service
      rm -rf /var/lib/lifepod /var/tmp/trace
      sed -i 's/SystemdCgroup = true/SystemdCgroup = false/' /etc/containerd/config.toml
      systemctl restart containerd
      lifepod up --detach ${PIDS_LIMIT} --container-runtime-endpoint ${ENDPOINT} >/dev/null`);
  });
  smokeTests(machine, 'cgroupfs');

  test('the engine starts with a private containerd', async () => {
    await machine().ok(`
      systemctl disable --now --quiet containerd
      rm -rf /var/lib/lifepod /var/tmp/trace
      lifepod up --detach ${PIDS_LIMIT} >/dev/null
      lifepod image load /opt/lifepod/images/busybox.tar`);
  });
  smokeTests(machine, 'private');
}

function smokeTests(machine: () => Machine, name: string): void {
  limitTest(machine, name);
  outOfMemoryTest(machine, 2);
  test(`lifepod down leaves nothing of the Pod ${name} behind`, async () => {
    await machine().ok('lifepod down');
    expect(await machine().ok(PRINT_LEFTOVERS)).toBe('');
    expect(await machine().ok(`cat ${traceOf(name)}`)).toBe('init\napp\nbefore\nstop\nafter\n');
  });
}
