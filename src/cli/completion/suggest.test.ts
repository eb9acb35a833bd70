import { expect, test } from 'vitest';
import { program } from '../main.ts';
import { suggest } from './suggest.ts';

/** Returns the completions of the last word of the line, without descriptions; for names that must be looked up, `KIND BEFORE|TYPED`. */
function suggested(line: string): string[] | string {
  const found = suggest(program, line.split(' '));
  if (found.kind === 'words') return found.words.map(({ text }) => text);
  return found.kind === 'names' ? `${found.names} ${found.before}|${found.typed}` : found.kind;
}

test.each([
  ['sta', ['status']],
  ['lo', ['logs']],
  ['image ', ['load', 'make', 'list', 'rm', 'help']],
  ['image ls --o', ['--output']],
  ['image list -o ', ['json']],
  ['image list -o=', ['-o=json']],
  ['version --output=j', ['--output=json']],
  ['up --det', ['--detach']],
  ['up --log-level ', ['debug', 'info', 'warn', 'error']],
  ['up --log-level=w', ['--log-level=warn']],
  ['up --disable-http2-serving ', ['true', 'false']],
  ['up --audit-log-mode blocking-', ['blocking-strict']],
  ['up --any', []],
  ['up --port ', []],
  ['completion ', ['bash', 'zsh', 'fish']],
  ['completion bash ', []],
  ['help sta', ['status']],
  ['nope ', []],
  ['describe p', ['pod']],
])('%j is completed by %j', (line, words) => {
  expect(suggested(line)).toEqual(words);
});

test.each([
  ['up ', 'files'],
  ['up a.yaml ', 'files'],
  ['up --data-dir ', 'folders'],
  ['up --token-auth-file=', 'files'],
  ['logs --kubeconfig ', 'files'],
  ['image load ', 'files'],
  ['image rm busy', 'images |busy'],
  ['run ', 'images |'],
  ['logs w', 'pods |w'],
  ['logs pod/w', 'pods pod/|w'],
  ['logs -f --tail 3 w', 'pods |w'],
  ['logs web ', 'containers |'],
  ['logs web -c a', 'containers |a'],
  ['logs web --container=a', 'containers --container=|a'],
  ['logs -n ', 'namespaces |'],
  ['why -n=k', 'namespaces -n=|k'],
  ['why --namespace=k', 'namespaces --namespace=|k'],
  ['timeline --context ', 'contexts |'],
  ['logs web -- -', 'containers |-'],
  ['timeline w', 'lives |w'],
  ['why ', 'lives |'],
  ['why pod/w', 'lives pod/|w'],
  ['why job/w', 'workloads job/|w'],
  ['why deployment.apps/', 'workloads deployment.apps/|'],
  ['skip ', 'deferring-pods |'],
  ['skip web ', 'entries |'],
  ['describe pod w', 'pods |w'],
  ['describe pod/w', 'pods pod/|w'],
])('%j is completed by %s', (line, kind) => {
  expect(suggested(line)).toEqual(kind);
});

test('a word is completed with the options and arguments before it', () => {
  const found = suggest(program, ['logs', '-n=mine', '--data-dir=/d', '--context', 'there', 'web', '-c', '']);
  expect(found).toMatchObject({ kind: 'names', names: 'containers', operands: ['web'] });
  expect('options' in found && Object.fromEntries(found.options)).toEqual({
    '--namespace': 'mine',
    '--data-dir': '/d',
    '--context': 'there',
  });
});

test('every visible command and option is offered', () => {
  const { commands } = program;
  expect(suggested('')).toEqual([...commands.map((command) => command.name()), 'help']);
  for (const command of commands.filter((each) => each.commands.length === 0)) {
    const visible = command.options.filter(({ hidden }) => !hidden).map(({ long }) => long);
    expect(suggested(`${command.name()} --`)).toEqual([...visible, '--help']);
  }
});
