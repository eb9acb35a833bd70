import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Pod } from '../../api/generated/types.ts';
import type { ContainerObservation, ContainerRuntime } from '../../runtime/runtime.ts';
import { terminationMessageFile } from '../container/container-config.ts';
import { createMessageReader } from './observed-pod.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'lifepod-messages-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const names = (prefix: string, count: number): string[] =>
  Array.from({ length: count }, (_, index) => `${prefix}${index}`);

function podOf(apps: number, init: number, ephemeral: number): Pod {
  const container = (name: string) => ({ name, image: 'x', terminationMessagePath: '/dev/termination-log' });
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web', namespace: 'default', uid: 'u1' },
    spec: {
      containers: names('app', apps).map(container),
      initContainers: names('init', init).map(container),
      ephemeralContainers: names('debug', ephemeral).map(container),
    },
  };
}

const ended = (name: string, message?: string): ContainerObservation => ({
  id: `id-${name}`,
  sandboxId: 's1',
  podUid: 'u1',
  name,
  kind: 'app',
  attempt: 0,
  state: 'exited',
  createdAt: 0,
  exitCode: 1,
  ...(message === undefined ? {} : { message }),
  image: 'x',
  imageId: 'x',
  annotations: {},
});

function messages(pod: Pod, runs: ContainerObservation[]): Promise<ReadonlyMap<string, string>> {
  const options = { podDirectory: folder, logDirectory: join(folder, 'logs'), runtime: {} as ContainerRuntime };
  return createMessageReader(options)(pod, runs, new AbortController().signal);
}

function writeMessage(name: string, text: string): void {
  const file = terminationMessageFile(folder, name, 0);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

describe('termination messages', () => {
  it.each([
    ['one container', podOf(1, 0, 0), 4096],
    ['three containers', podOf(2, 1, 0), 4096],
    ['four containers', podOf(2, 1, 1), 3072],
    ['thirteen containers', podOf(10, 2, 1), 945],
  ])(
    'the termination message of each of %s gets an equal share of 12 KiB, at most 4 KiB',
    async (_, pod, limitBytes) => {
      writeMessage('app0', 'x'.repeat(5000));
      const found = await messages(pod, [ended('app0')]);
      expect(found.get('id-app0')).toBe('x'.repeat(limitBytes));
    },
  );

  it('the limit of a termination message counts bytes and does not split a character', async () => {
    writeMessage('app0', `a${'\u00e9'.repeat(3000)}`);
    const found = await messages(podOf(4, 0, 0), [ended('app0')]);
    expect(found.get('id-app0')).toBe(`a${'\u00e9'.repeat(1535)}`);
  });

  it("the termination message is the runtime's if the container wrote none, with the same limit", async () => {
    writeMessage('app0', 'own');
    const long = 'r'.repeat(5000);
    const found = await messages(podOf(4, 0, 0), [ended('app0', long), ended('app1', long)]);
    expect(found.get('id-app0')).toBe('own');
    expect(found.get('id-app1')).toBe('r'.repeat(3072));
  });

  it('the termination message of an ephemeral container is read', async () => {
    writeMessage('debug0', 'bye');
    const found = await messages(podOf(1, 0, 1), [ended('debug0')]);
    expect(found.get('id-debug0')).toBe('bye');
  });
});
