import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Container, Pod } from '../../api/generated/types.ts';
import { giveToGroup, hugePageBytes, makeFolder, memoryBytes, setUpEmptyDir } from './empty-dir.ts';

const MEBIBYTE = 2 ** 20;
const limited = (memory: string | undefined, more: object = {}): Container =>
  ({ name: 'c', ...(memory === undefined ? {} : { resources: { limits: { memory } } }), ...more }) as Container;
const podOf = (containers: Container[], initContainers: Container[] = []): Pod =>
  ({ metadata: { name: 'p' }, spec: { containers, initContainers } }) as Pod;

test.each<[string, Pod, string | undefined, number]>([
  ["the node's allocatable memory", podOf([limited(undefined)]), undefined, 1024],
  ["the volume's limit", podOf([limited(undefined)]), '5Mi', 5],
  ["the node's allocatable memory if the volume's limit is larger", podOf([limited(undefined)]), '5Gi', 1024],
  ["the sum of the containers' limits", podOf([limited('30Mi'), limited('70Mi')]), undefined, 100],
  ["the Pod's limit if the volume's limit is larger", podOf([limited('30Mi')]), '70Mi', 30],
  ['the limit of the largest init container', podOf([limited('30Mi')], [limited('50Mi')]), undefined, 50],
  [
    'the limits of app containers and sidecars',
    podOf([limited('30Mi')], [limited('50Mi', { restartPolicy: 'Always' })]),
    undefined,
    80,
  ],
  [
    "the node's allocatable memory if an init container has no limit",
    podOf([limited('30Mi')], [limited(undefined)]),
    undefined,
    1024,
  ],
])('a memory volume has the size of %s', (_what, pod, sizeLimit, mebibytes) => {
  const source = sizeLimit === undefined ? {} : { sizeLimit };
  expect(memoryBytes(source, pod, { memory: '1Gi' })).toBe(mebibytes * MEBIBYTE);
});

test('a memory volume has the default size of the kernel if no limit is known', () => {
  expect(memoryBytes({}, podOf([limited(undefined)]), {})).toBe(0);
});

const requesting = (...sizes: string[]): Container =>
  ({
    name: 'c',
    resources: { requests: Object.fromEntries(sizes.map((size) => [`hugepages-${size}`, '4Mi'])) },
  }) as Container;

test('an emptyDir of huge pages has the page size that the containers request, and other sizes are rejected', () => {
  expect(hugePageBytes('HugePages', podOf([limited('1Mi')], [requesting('2Mi')]))).toBe(2 * MEBIBYTE);
  expect(hugePageBytes('HugePages-2Mi', podOf([requesting('2Mi', '1Gi')]))).toBe(2 * MEBIBYTE);
  expect(hugePageBytes('HugePages-1Gi', podOf([requesting('2Mi'), requesting('1024Mi')]))).toBe(1024 * MEBIBYTE);
  const pod = podOf([limited('1Mi')]);
  const spec = { ...pod.spec, deferContainers: [requesting('2Mi')] } as Pod['spec'];
  expect(hugePageBytes('HugePages', { ...pod, spec })).toBe(2 * MEBIBYTE);
  expect(() => hugePageBytes('HugePages', podOf([requesting('2Mi', '1Gi')]))).toThrow(
    "medium: HugePages can't be used if container requests multiple huge page sizes",
  );
  for (const medium of ['HugePages', 'HugePages-1Gi', 'HugePages-x'])
    expect(() => hugePageBytes(medium, podOf(medium === 'HugePages' ? [limited('1Mi')] : [requesting('2Mi')]))).toThrow(
      `medium ${medium}: hugePages storage requested, but there is no resource request for huge pages`,
    );
});

test('a folder that an engine left without its mode and final name is completed', async () => {
  const root = mkdtempSync(join(tmpdir(), 'lifepod-folder-'));
  try {
    mkdirSync(join(root, '.data'), { mode: 0o700 });
    await makeFolder(join(root, 'data'));
    expect(statSync(join(root, 'data')).mode & 0o7777).toBe(0o777);
    expect(existsSync(join(root, '.data'))).toBe(false);
  } finally {
    rmSync(root, { recursive: true });
  }
});

test('makeFolder() leaves an existing folder as it is, and reports a path that cannot be read', async () => {
  const root = mkdtempSync(join(tmpdir(), 'lifepod-folder-'));
  try {
    mkdirSync(join(root, 'data'), { mode: 0o700 });
    await makeFolder(join(root, 'data'));
    expect(statSync(join(root, 'data')).mode & 0o7777).toBe(0o700);
    writeFileSync(join(root, 'file'), '');
    const lstat = expect.objectContaining({ code: 'ENOTDIR', syscall: 'lstat' });
    await expect(makeFolder(join(root, 'file/data'))).rejects.toEqual(lstat);
  } finally {
    rmSync(root, { recursive: true });
  }
});

test('giveToGroup() sets the mode only if the folder gets another group', async () => {
  const root = mkdtempSync(join(tmpdir(), 'lifepod-folder-'));
  try {
    const { gid } = statSync(root);
    const mode = (): number => statSync(root).mode & 0o7777;
    chmodSync(root, 0o750);
    await giveToGroup(root, undefined);
    await giveToGroup(root, gid);
    expect(mode()).toBe(0o750);
    // Without the rights of root, the change of the group fails after the change of the mode.
    await giveToGroup(root, gid + 1).catch(() => undefined);
    expect(mode()).toBe(0o2777);
  } finally {
    rmSync(root, { recursive: true });
  }
});

test.each(['HugePages', 'HugePages-2Mi', 'Huge', 'memory'])(
  'an emptyDir with the medium %s is not set up as a folder on disk',
  async (medium) => {
    const root = mkdtempSync(join(tmpdir(), 'lifepod-folder-'));
    try {
      const message = medium.startsWith('HugePages') ? 'no resource request for huge pages' : 'unknown storage medium';
      const env = { pod: podOf([limited(undefined)]), allocatable: {} };
      const setUp = setUpEmptyDir(join(root, 'v'), { medium }, env, new AbortController().signal);
      await expect(setUp).rejects.toThrow(message);
    } finally {
      rmSync(root, { recursive: true });
    }
  },
);
