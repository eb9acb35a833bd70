import { expect, it } from 'vitest';
import { podOf } from '../../api/core/v1/pod/pod-fixtures.ts';
import { sandboxMetadata } from './sandbox-metadata.ts';

const podWith = (labels: Record<string, string>, annotations: Record<string, string>) => {
  const pod = podOf({});
  return { ...pod, metadata: { ...pod.metadata, labels, annotations } };
};

it('sandboxMetadata() passes all labels and annotations of usual size to the runtime', () => {
  const [labels, annotations] = [{ app: 'web' }, { note: 'n'.repeat(1000) }];
  expect(sandboxMetadata(podWith(labels, annotations))).toEqual({ shown: { labels, annotations }, cut: undefined });
});

it('sandboxMetadata() omits entries that exceed 8 KiB, and returns the message of an Event', () => {
  const labels = Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`l${index}`, 'v'.repeat(60)]));
  const { shown, cut } = sandboxMetadata(
    podWith(labels, { before: 'b', large: 'é'.repeat(3000), many: 'm'.repeat(250_000), after: 'a' }),
  );
  expect(shown).toEqual({ labels, annotations: { before: 'b', after: 'a' } });
  expect(cut).toBe('the container runtime gets at most 8 KiB of the labels and annotations: 2 omitted');
});

it('sandboxMetadata() omits the last applied configuration of kubectl without an Event', () => {
  const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': 'x'.repeat(10_000) };
  expect(sandboxMetadata(podWith({}, annotations))).toEqual({ shown: { labels: {}, annotations: {} }, cut: undefined });
});

it('sandboxMetadata() passes at most 8 KiB, however many labels there are', () => {
  const labels = Object.fromEntries(Array.from({ length: 50_000 }, (_, index) => [`l${index}`, '']));
  const { shown } = sandboxMetadata(podWith(labels, labels));
  const passed = [...Object.keys(shown.labels), ...Object.keys(shown.annotations)];
  expect(passed.length).toBeGreaterThan(300);
  expect(passed.length * 'l0'.length).toBeLessThan(8 * 1024);
});

it('sandboxMetadata() reads the labels of a Pod once for all of its containers', () => {
  let looks = 0;
  const labels = new Proxy(
    { app: 'web' },
    {
      ownKeys: (all) => {
        looks += 1;
        return Reflect.ownKeys(all);
      },
    },
  );
  const pod = podWith(labels, {});
  for (let container = 0; container < 100; container++) sandboxMetadata(pod);
  expect(looks).toBe(1);
});
