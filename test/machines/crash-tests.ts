/** kill -9 of the engine and of containerd under Pods, as systemd brings them back. */
import { expect, test } from 'vitest';
import { pod } from '../support/manifests.ts';
import type { Machine } from './machine.ts';
import { apply, printStatus, traced, traceOf, untilReady, untilUnitReady } from './scripts.ts';

const KILL = 'systemctl kill --kill-whom=main --signal=KILL';

export function crashTests(machine: () => Machine): void {
  test('kill -9 of the engine: systemd starts it, and the containers go on', async () => {
    const ids = printStatus('life', 'containerStatuses', '.containerID');
    const before = await machine().ok(ids);
    await machine().ok(untilUnitReady(`${KILL} lifepod`));
    expect(await machine().ok(ids)).toBe(before);
  });

  test.each([
    { units: 'containerd', name: 'kept-1' },
    { units: 'containerd lifepod', name: 'kept-2' },
  ])('an init container that ends while $units is down does not run again', async ({ units, name }) => {
    const script = `until test -e /trace/${name}.go; do sleep 0.1; done; echo ran >>/trace/${name}`;
    const init = [{ name: 'init', script, ...traced.mount }];
    const end = `${KILL} ${units}
      touch ${traceOf(name)}.go
      timeout 60 grep -qm 1 ran < <(exec tail -F ${traceOf(name)} 2>/dev/null)
      if systemctl is-active --quiet containerd; then exit 1; fi`;
    await machine().ok(`${apply(pod(name, { init, spec: { volumes: traced.volumes } }))}
      started='{.status.initContainerStatuses[0].state.running.startedAt}'
      kubectl wait --for=jsonpath="$started" pod/${name} --timeout=240s >/dev/null
      ${units.includes('lifepod') ? untilUnitReady(end) : end}
      ${untilReady(name)}`);
    expect(await machine().ok(`cat ${traceOf(name)}`)).toBe('ran\n');
    expect(await machine().ok(printStatus(name, 'initContainerStatuses', '.restartCount'))).toBe('0\n');
    await machine().ok(`kubectl delete pod ${name} >/dev/null`);
  });
}
