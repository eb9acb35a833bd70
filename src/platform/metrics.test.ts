import { expect, test } from 'vitest';
import { createMetrics, family, metricsText, single } from './metrics.ts';

test('counters and gauges have one value per combination of labels', async () => {
  const metrics = createMetrics();
  const requests = metrics.counter('requests_total', 'How many.', ['verb', 'code']);
  requests.add(1, 'GET', '200');
  requests.add(2, 'GET', '200');
  requests.add(1, 'PUT', '409');
  requests.add(1, 'GET', '404');
  requests.remove('GET', '404');
  const open = metrics.gauge('open', 'How many now.', []);
  open.add(2);
  open.add(-1);
  expect(metricsText(await metrics.families())).toBe(
    `# HELP requests_total How many.
# TYPE requests_total counter
requests_total{verb="GET",code="200"} 3
requests_total{verb="PUT",code="409"} 1
# HELP open How many now.
# TYPE open gauge
open 1
`,
  );
});

test('a bucket of a histogram counts all values up to and including its bound', async () => {
  const metrics = createMetrics();
  const seconds = metrics.histogram('seconds', 'How long.', ['of'], [0.1, 1]);
  for (const value of [0.05, 0.1, 0.5, 7]) seconds.observe(value, 'a');
  expect(metricsText(await metrics.families())).toBe(
    `# HELP seconds How long.
# TYPE seconds histogram
seconds_bucket{of="a",le="0.1"} 2
seconds_bucket{of="a",le="1"} 3
seconds_bucket{of="a",le="+Inf"} 4
seconds_sum{of="a"} 7.65
seconds_count{of="a"} 4
`,
  );
});

test('sources are read on each request, families without samples are omitted, and a counter without labels starts at 0', async () => {
  const metrics = createMetrics();
  let reads = 0;
  metrics.source(async () => [family('gauge', 'reads', 'How often.', single(++reads, 1234))]);
  metrics.counter('never_total', 'Of labels that were not seen.', ['a']);
  metrics.counter('nothing_total', 'Yet.', []);
  await metrics.families();
  expect(metricsText(await metrics.families())).toBe(
    '# HELP reads How often.\n# TYPE reads gauge\nreads 2 1234\n# HELP nothing_total Yet.\n# TYPE nothing_total counter\nnothing_total 0\n',
  );
});

test('special characters of the text format are escaped in help texts and labels', () => {
  const samples = [{ labels: { path: 'C:\\a "b"\nc' }, value: Number.POSITIVE_INFINITY }];
  expect(metricsText([family('gauge', 'x', 'a\\b\nc', samples)])).toBe(
    '# HELP x a\\\\b\\nc\n# TYPE x gauge\nx{path="C:\\\\a \\"b\\"\\nc"} +Inf\n',
  );
});
