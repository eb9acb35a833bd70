import { expect, test } from 'vitest';
import type { Action, FailedAction } from '../../../lifecycle/types.ts';
import { createWorkerImages } from './images.ts';

const IMAGE = 'busybox:1.28';
const NAME = 'docker.io/library/busybox:1.28';
const pull = (container: string, image = IMAGE): Action => ({ kind: 'pullImage', container, attempt: 0, image });
const check = (container: string): Action => ({
  kind: 'checkImage',
  container,
  attempt: 0,
  image: IMAGE,
  mustExist: false,
});
const failed = (action: Action): FailedAction => ({ action, at: 0, count: 1, reason: 'ErrImagePull', message: 'no' });

test('each of two containers with the image that has appeared looks for it', () => {
  const images = createWorkerImages();
  const names = (): string[] => [...images.observed().appeared];
  expect(images.appeared(NAME, [failed(pull('one'))], [pull('two'), pull('other', 'other:1')])).toBe(true);
  expect(names()).toEqual(['one', 'two']);
  images.ended(check('one'), 'key');
  expect(names()).toEqual(['two']);
  images.found({ container: 'two', state: { state: 'present', attempt: 0, image: IMAGE, imageId: 'sha' } });
  expect(names()).toEqual([]);
});

test('an image that no action waits for wakes no container, and an unknown one those with any image', () => {
  const images = createWorkerImages();
  expect(images.appeared('docker.io/library/new:1', [failed(pull('one'))], [{ kind: 'unmountVolumes' }])).toBe(false);
  expect(images.appeared(undefined, [failed(pull('one'))], [pull('two', 'other:1')])).toBe(true);
  expect([...images.observed().appeared]).toEqual(['one', 'two']);
});
