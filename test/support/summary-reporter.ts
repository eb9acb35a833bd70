/** Prints, after a run, the duration of each project, the slowest tests, and the seed of the random tests. */
import type { Reporter, TestCase, TestModule } from 'vitest/node';

const SLOWEST = 10;

const seconds = (millis: number): string => `${(millis / 1000).toFixed(1)} s`.padStart(9);

export class SummaryReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const lines = [
      'Time of each project, from its first to its last test:',
      ...[...Map.groupBy(tests, ({ project }) => project.name)].map(
        ([name, own]) => `${seconds(spanMillis(own))}  ${name} (${own.length} tests)`,
      ),
      `The slowest ${SLOWEST} tests:`,
      ...tests
        .toSorted((a, b) => durationMillis(b) - durationMillis(a))
        .slice(0, SLOWEST)
        .map((test) => `${seconds(durationMillis(test))}  ${test.module.relativeModuleId} > ${test.fullName}`),
      `LIFEPOD_SEED=${process.env['LIFEPOD_SEED'] ?? 'unset'}`,
    ];
    process.stdout.write(`\n${lines.join('\n')}\n`);
  }
}

const durationMillis = (test: TestCase): number => test.diagnostic()?.duration ?? 0;

function spanMillis(tests: readonly TestCase[]): number {
  const ran = tests.map((test) => test.diagnostic()).filter((diagnostic) => diagnostic !== undefined);
  const ends = ran.map(({ startTime, duration }) => startTime + duration);
  return ran.length === 0 ? 0 : Math.max(...ends) - Math.min(...ran.map(({ startTime }) => startTime));
}
