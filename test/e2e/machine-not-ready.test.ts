/** An engine on a containerd that has no CNI configuration yet, as Debian installs it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect, test } from 'vitest';
import { chooseFreeRanges } from '../../src/cli/cidr.ts';
import { startContainerd } from '../../src/runtime/containerd/containerd.ts';
import { loadImages, scratch } from '../integration/containerd-fixture.ts';
import { LAUNCHER, launch, scratchFolder } from '../support/lifepod.ts';

test('up says what is missing and what to do, and is ready once it is there', async () => {
  const machine = scratch();
  const own = scratchFolder();
  const cni = join(machine.options.cniConfDir, '10-test.conflist');
  const configuration = readFileSync(cni);
  rmSync(cni);
  const containerd = await startContainerd(machine.options);
  try {
    await loadImages(machine, containerd.endpoint);
    const { podCidr, serviceCidr } = await chooseFreeRanges();
    const options = ['--port', '0', '--pod-cidr', podCidr, '--service-cidr', serviceCidr];
    const runtime = ['--container-runtime-endpoint', containerd.endpoint];
    const up = spawn(LAUNCHER, ['up', '--detach', '--data-dir', own.path, ...options, ...runtime], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const ended = once(up, 'exit');
    const lines: string[] = [];
    for await (const line of createInterface({ input: up.stderr })) {
      lines.push(line);
      if (line.startsWith('lifepod waits')) writeFileSync(cni, configuration);
    }
    expect(lines).toEqual([
      expect.stringMatching(/^lifepod waits for the node to be ready: .*cni plugin not initialized; write a CNI /),
      expect.stringMatching(/^lifepod .* is ready after /),
    ]);
    expect(await ended).toEqual([0, null]);
  } finally {
    await launch(['down', '--data-dir', own.path]);
    await own.remove();
    await containerd.shutdown();
    await machine.remove();
  }
});
