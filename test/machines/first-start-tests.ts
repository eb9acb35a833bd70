/** Tests the first start with a machine's containerd, before and after the steps of the README. */
import { expect, test } from 'vitest';
import type { Machine } from './machine.ts';
import { CNI_CONFIGURATION, cniConfiguration, containerdConfiguration } from './readme.ts';
import { ENDPOINT, PIDS_LIMIT } from './scripts.ts';

/** The shutdown grace period is 300 s, because Pods take more than 30 s to end on an emulated processor. */
const OPTIONS = `--container-runtime-endpoint ${ENDPOINT} ${PIDS_LIMIT} --shutdown-grace-period 300s \
  --eviction-hard 'memory.available<600Mi' --eviction-pressure-transition-period 0s`;
const IMPORT_SANDBOX_IMAGE = (name: string): string =>
  `ctr -n k8s.io images import /opt/lifepod/images/pause.tar >/dev/null && ctr -n k8s.io images tag localhost/pause:1 ${name} >/dev/null`;

export function firstStartTests(machine: () => Machine): void {
  test("with Debian's default configuration of containerd, lifepod up names the missing CNI configuration and fails after 60 s", async () => {
    const { code, stderr } = await machine().run(`systemctl start containerd && lifepod up --detach ${OPTIONS}`);
    expect(stderr).toMatch(/^lifepod is waiting for the node to be ready: .*cni plugin not initialized; write a CNI /m);
    expect(stderr).toMatch(/^lifepod: the node is not ready after 60 s: .*; write a CNI configuration /m);
    expect(code).toBe(1);
  });

  test("with Docker's default configuration of containerd, lifepod up says which setting to change", async () => {
    await machine().ok(`
      cp /etc/containerd/config.toml /root/debian.toml
      echo 'disabled_plugins = ["cri"]' >/etc/containerd/config.toml
      systemctl restart containerd`);
    // The options of a start that failed are not recorded.
    const { code, stderr } = await machine().run(`lifepod up --detach ${OPTIONS}`);
    expect(stderr).toMatch(
      /^lifepod: .*does not offer CRI v1: remove "cri" from disabled_plugins in its configuration/m,
    );
    expect(code).toBe(1);
  });

  test('without a sandbox image, lifepod up names the image, and the node becomes Ready when the image has been imported', async () => {
    await machine().ok(`${cniConfiguration()}\n${containerdConfiguration()}\nsystemctl restart containerd`);
    const output = await machine().run(`
      rm -f /tmp/up; mkfifo /tmp/up
      (lifepod up --detach ${OPTIONS} 2>&1 >/dev/null; echo "code $?") >/tmp/up &
      while read -r line; do
        echo "$line"
        image=$(grep -oE '[^ "]+/pause:[0-9.]+' <<<"$line" | head -n 1)
        if [ -n "$image" ]; then ${IMPORT_SANDBOX_IMAGE('$image')}; fi
      done </tmp/up`);
    expect(output.stdout).toMatch(
      /^lifepod is waiting for the node to be ready: .*sandbox image.*\/pause:.*ctr -n k8s\.io images import/m,
    );
    expect(output.stdout).toMatch(/^lifepod .* is ready after .*\ncode 0$/m);
  });

  test('lifepod up --install-service hands the running engine over to systemd, also when it is repeated', async () => {
    const output = await machine().ok(`
      lifepod image load /opt/lifepod/images/busybox.tar
      systemctl enable --quiet containerd
      lifepod up --install-service
      systemctl show lifepod -P MainPID
      lifepod up --install-service
      systemctl show lifepod -P MainPID
      systemctl is-enabled lifepod lifepod-shutdown
      systemctl show lifepod-shutdown -P TimeoutStopUSec`);
    const EXPORT = 'export KUBECONFIG=/var/lib/lifepod/kubeconfig\n';
    expect(output).toMatch(new RegExp(`${EXPORT}(\\d+)\n${EXPORT}\\1\nenabled\nenabled\n6min\n$`));
    expect(
      await machine().ok('systemctl is-active lifepod lifepod-shutdown; systemctl show lifepod -P NRestarts'),
    ).toBe('active\nactive\n0\n');
    expect(await machine().ok(`test -s ${CNI_CONFIGURATION}; kubectl get nodes --no-headers`)).toMatch(
      /^machine +Ready /,
    );
  });
}
