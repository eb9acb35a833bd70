/** systemd restarts the engine and containerd. */
import { expect, test } from 'vitest';
import { pod } from '../support/manifests.ts';
import type { Machine } from './machine.ts';
import { apply, printStatus, traced, traceOf, untilReady, untilUnitReady } from './scripts.ts';

const KILL = 'systemctl kill --kill-whom=main --signal=KILL';

export function crashTests(machine: () => Machine): void {
  test('systemd restarts an engine killed with SIGKILL, and the containers keep running', async () => {
    const ids = printStatus('life', 'containerStatuses', '.containerID');
    const before = await machine().ok(ids);
    await machine().ok(untilUnitReady(`${KILL} lifepod`));
    expect(await machine().ok(ids)).toBe(before);
  });

  test.each([
    {
      down: 'containerd is down',
      name: 'kept-1',
      commands: (trigger: string) => `${KILL} containerd\n${trigger}`,
    },
    {
      down: 'containerd and the engine are down',
      name: 'kept-2',
      commands: (trigger: string) =>
        untilUnitReady(`
        systemctl stop containerd
        ${KILL} lifepod
        ${trigger}
        timeout 240 grep -qm 1 'waiting for it' < <(exec journalctl -f -u lifepod -o cat --since "@$since" 2>/dev/null)
        systemctl start containerd`),
    },
  ])('an init container that ends while $down does not run again', async ({ name, commands }) => {
    const script = `until test -e /trace/${name}.go; do sleep 0.1; done; echo ran >>/trace/${name}`;
    const init = [{ name: 'init', script, ...traced.mount }];
    const trigger = `touch ${traceOf(name)}.go
      timeout 60 grep -qm 1 ran < <(exec tail -F ${traceOf(name)} 2>/dev/null)
      if systemctl is-active --quiet containerd; then echo 'systemd restarted containerd too early'; exit 1; fi`;
    await machine().ok(`${apply(pod(name, { init, spec: { volumes: traced.volumes } }))}
      started='{.status.initContainerStatuses[0].state.running.startedAt}'
      kubectl wait --for=jsonpath="$started" pod/${name} --timeout=240s >/dev/null
      ${commands(trigger)}
      ${untilReady(name)}`);
    expect(await machine().ok(`cat ${traceOf(name)}`)).toBe('ran\n');
    expect(await machine().ok(printStatus(name, 'initContainerStatuses', '.restartCount'))).toBe('0\n');
    const code = printStatus(name, 'initContainerStatuses', '.state.terminated.exitCode');
    expect(await machine().ok(code)).toBe('0\n');
    await machine().ok(`kubectl delete pod ${name} >/dev/null`);
  });
}
