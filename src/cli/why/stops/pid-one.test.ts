import { expect, test } from 'vitest';
import type { Pod } from '../../../api/generated/types.ts';
import { hearSignals, isDeaf, needsTime, processEvidence } from './pid-one.ts';

const podOf = (...command: string[]): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p' },
  spec: { containers: [{ name: 'app', image: 'x', command }] },
});

test.each([
  [['sh', '-c', "trap '' TERM; sleep 9"], true],
  [['/bin/bash', '-c', 'trap "echo bye" EXIT SIGTERM\nsleep 9'], true],
  [['sh', '-c', 'trap "echo bye" EXIT; sleep 9'], false],
  [['sleep', 'trap', 'TERM'], false],
])('the evidence about %j that does not end says that it traps TERM: %s', (command, traps) => {
  const lines = processEvidence(podOf(...command), 'app').join('\n');
  expect(lines.includes('it traps TERM')).toBe(traps);
  expect(lines.includes('installs no handler')).toBe(!traps);
  expect(hearSignals(podOf(...command), 'app').description.includes('make the trap end the shell')).toBe(traps);
});

test.each<[string[], 'ignores it' | 'needs time' | 'may handle it']>([
  [['sleep', '9'], 'ignores it'],
  [['/usr/bin/tail', '-f', '/dev/null'], 'ignores it'],
  [['server'], 'may handle it'],
  [['sh', '-c', 'server; true'], 'ignores it'],
  [['sh', '-c', 'while :; do server; done\n'], 'ignores it'],
  [['bash', '-ec', 'prepare && sleep 9'], 'ignores it'],
  [['sh', '-c', 'exec sleep 9'], 'ignores it'],
  [['sh', '-c', 'server'], 'may handle it'],
  [['sh', '-c', 'prepare; exec server --port 1; exit 1'], 'may handle it'],
  [['sh', '/start.sh'], 'may handle it'],
  [['sh', '-c', "trap '' TERM; server; true"], 'ignores it'],
  [['sh', '-c', 'trap - TERM; server; true'], 'ignores it'],
  [['sh', '-c', 'trap \'echo "; bye"; exit\' INT; server; true'], 'ignores it'],
  [['sh', '-c', "trap 'exit' EXIT; sleep 15 & wait"], 'ignores it'],
  [['sh', '-c', "trap 'echo stopping; sleep 9; echo done; exit 0' TERM; sleep 99 & wait"], 'needs time'],
  [['sh', '-c', "trap 'sleep 6; exit' TERM INT; sleep 99 & wait"], 'needs time'],
  [['sh', '-c', 'trap "kill $!; exit" 15; sleep 99 & wait'], 'needs time'],
  [['sh', '-c', "trap -- 'sleep 6; exit' sigterm\nsleep 99 & wait"], 'needs time'],
  [['sh', '-c', 'stop() { sleep 6; exit; }; trap stop TERM; sleep 99 & wait'], 'needs time'],
  [['sh', '-c', "trap 'sleep 6; exit' TERM; sleep 99"], 'may handle it'],
  [['sh', '-c', "trap 'echo no' TERM; sleep 99 & wait"], 'may handle it'],
])('after its stop signal, the process %j %s', (command, expected) => {
  const pod = podOf(...command);
  const [deaf, slow] = [isDeaf(pod, 'app'), needsTime(pod, 'app')];
  expect(deaf ? 'ignores it' : slow ? 'needs time' : 'may handle it').toBe(expected);
  expect(deaf && slow).toBe(false);
});

test('a process that is not PID 1, or whose program the image determines, may handle its stop signal', () => {
  const pod = podOf('sleep', '9');
  expect(isDeaf({ ...pod, spec: { shareProcessNamespace: true, containers: pod.spec?.containers ?? [] } }, 'app')).toBe(
    false,
  );
  expect(isDeaf({ ...pod, spec: { containers: [{ name: 'app', image: 'x', args: ['sleep', '9'] }] } }, 'app')).toBe(
    false,
  );
});

test.each([
  ["trap 'sleep 6; exit' TERM; sleep 99", "run its program with '&' and 'wait'"],
  ["trap 'echo no' TERM; sleep 99 & wait", 'make the trap end the shell'],
  ["trap 'sleep 6; exit' TERM; sleep 99 & wait", /^make its trap end sooner, or give it more time/],
])('the advice for a shell with the script %j', (script, expected) => {
  const { description } = hearSignals(podOf('sh', '-c', script), 'app');
  const advice = description.replace('for the next Pod: ', '');
  if (typeof expected === 'string') expect(advice).toBe(expected);
  else expect(advice).toMatch(expected);
});
