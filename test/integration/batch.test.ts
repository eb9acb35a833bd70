import { afterAll, beforeAll, expect, test } from 'vitest';
import { type KubectlFixture, startKubectlFixture } from './kubectl-fixture.ts';

let fixture: KubectlFixture;
beforeAll(async () => {
  fixture = await startKubectlFixture();
});
afterAll(() => fixture?.close());

test('kubectl creates, shows and changes a Job, whose selector is generated', async () => {
  expect(await fixture.ok('create', 'job', 'sum', '--image=busybox:1.28', '--', 'true')).toBe(
    'job.batch/sum created\n',
  );
  const { metadata, spec } = await fixture.get('job/sum');
  expect(spec.selector.matchLabels).toEqual({ 'batch.kubernetes.io/controller-uid': metadata.uid });
  expect(metadata.labels).toEqual(spec.template.metadata.labels);
  expect(metadata.labels).toMatchObject({ 'job-name': 'sum', 'controller-uid': metadata.uid });
  expect(await fixture.ok('get', 'jobs')).toMatch(/^sum +Running +0\/1 +\d+s$/m);
  expect(await fixture.ok('describe', 'job', 'sum')).toMatch(/^Completion Mode: +NonIndexed$/m);
  expect(await fixture.ok('patch', 'job', 'sum', '-p', '{"spec":{"suspend":true}}')).toBe('job.batch/sum patched\n');
  expect((await fixture.get('job/sum')).metadata.generation).toBe(2);
});

test('kubectl creates a CronJob, and a Job from it', async () => {
  await fixture.ok('create', 'cronjob', 'daily', '--image=busybox:1.28', '--schedule=@daily', '--', 'true');
  expect(await fixture.ok('get', 'cj')).toMatch(/^daily +@daily +<none> +False +0 +<none> +\d+s$/m);
  expect(await fixture.ok('create', 'job', 'now', '--from=cronjob/daily')).toBe('job.batch/now created\n');
});
