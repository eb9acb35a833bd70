/**
 * Measures how hostile requests of one client affect the engine: the longest time that a request of another client takes during the attack,
 * and the maximum of the engine's additional memory.
 */
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { Agent, type RequestOptions, request } from 'node:https';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { adminOf } from '../test/support/raw-streams.ts';
import { type BenchEngine, residentMebibytes, startEngine } from './engine.ts';

const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps';
const PODS = '/api/v1/namespaces/default/pods';
const LARGE = 2_900_000;
const MEBIBYTE = 2 ** 20;
const LOOK_MILLIS = 20;

type Call = (method: string, path: string, type: string, body?: string) => Promise<IncomingMessage>;

interface Attack {
  name: string;
  /** Runs before the measurement begins. */
  prepare?(call: Call): Promise<void>;
  /** Resolves with the status code of the response, for the output. */
  run(call: Call): Promise<string>;
}

const many = <T>(count: number, item: (index: number) => T): T[] => Array.from({ length: count }, (_, i) => item(i));
const lines = (line: (index: number) => string): string =>
  many(Math.floor(LARGE / line(100_000).length), line).join('');

async function read(answer: IncomingMessage): Promise<string> {
  answer.resume();
  await once(answer, 'end');
  return String(answer.statusCode);
}

const apply = (name: string, body: string): Attack => ({
  name,
  run: async (call) =>
    read(await call('PATCH', `${CONFIG_MAPS}/a?fieldManager=me`, 'application/apply-patch+yaml', body)),
});
const patch = (name: string, operations: object[]): Attack => ({
  name,
  run: async (call) => {
    await read(await call('POST', CONFIG_MAPS, 'application/json', '{"metadata":{"name":"a"},"data":{"a":"b"}}'));
    const answer = await call('PATCH', `${CONFIG_MAPS}/a`, 'application/json-patch+json', JSON.stringify(operations));
    return read(answer);
  },
});
const pod = (name: string, container: object): Attack => ({
  name,
  run: async (call) => {
    const spec = { nodeSelector: { no: 'node' }, containers: [{ name: 'a', image: 'b', ...container }] };
    const body = JSON.stringify({ metadata: { name: name.toLowerCase().replaceAll(/[^a-z]+/g, '-') }, spec });
    return read(await call('POST', PODS, 'application/json', body));
  },
});

async function fill(call: Call, count: number, text: string): Promise<void> {
  for (let index = 0; index < count; index++) {
    const body = JSON.stringify({ metadata: { name: `large-${index}` }, data: { text } });
    await read(await call('PUT', `${CONFIG_MAPS}/large-${index}`, 'application/json', body)).then(async (code) => {
      if (code === '404') await read(await call('POST', CONFIG_MAPS, 'application/json', body));
    });
  }
}

const unread = (name: string, count: number, path: string, meanwhile: (call: Call) => Promise<void>): Attack => ({
  name,
  prepare: async (call) => {
    await fill(call, 30, 'x'.repeat(MEBIBYTE - 1000));
    // The first read makes the API server keep the serialized objects, which must not count as additional memory.
    await read(await call('GET', CONFIG_MAPS, 'application/json'));
  },
  async run(call) {
    const answers = await Promise.all(many(count, () => call('GET', path, 'application/json')));
    for (const answer of answers) answer.on('error', () => undefined);
    await meanwhile(call);
    await pause(2000);
    for (const answer of answers) answer.destroy();
    return String(answers[0]?.statusCode);
  },
});

const ATTACKS: readonly Attack[] = [
  apply('YAML: keys', `data:\n${lines((i) => `  k${i}: v\n`)}`),
  apply('YAML: merge keys', `a: &a {b: c}\nd:\n${lines(() => ' <<: *a\n')}`),
  apply('YAML: escapes', `a: "${'\\q'.repeat(LARGE / 2)}"`),
  apply('YAML: newlines', `${'\n'.repeat(LARGE)}a: b`),
  apply('YAML: nested flow mappings', `a: ${'{'.repeat(LARGE)}`),
  patch(
    'JSON patch: copies that double',
    many(40, (i) => ({ op: 'copy', from: '/data', path: `/data/c${i}` })),
  ),
  patch('JSON patch: 10,000 elements before others', [
    { op: 'add', path: '/data/l', value: many(400_000, () => 1) },
    ...many(9999, () => ({ op: 'add', path: '/data/l/0', value: 1 })),
  ]),
  apply('100,000 levels', `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`),
  pod('Pod: 65,535 ports', { ports: many(65_535, (i) => ({ containerPort: i + 1 })) }),
  pod('Pod: 20,000 equal ports', { ports: many(20_000, () => ({ containerPort: 80 })) }),
  unread('50 lists of 30 MiB, unread', 50, CONFIG_MAPS, async () => {}),
  unread('100 paused watchers, 30 MiB of changes', 100, `${CONFIG_MAPS}?watch=1&resourceVersion=0`, (call) =>
    fill(call, 30, 'y'.repeat(MEBIBYTE - 1000)),
  ),
];

export async function stall(): Promise<void> {
  const engine = await startEngine();
  try {
    console.log('| request | answer | longest wait of others | additional memory, at most |');
    console.log('|---|---|---|---|');
    for (const attack of ATTACKS) console.log(await measure(engine, attack));
  } finally {
    await engine.stop();
  }
}

function caller(engine: BenchEngine, agent: Agent): Call {
  const { host, port } = adminOf(join(engine.dataDir, 'kubeconfig'));
  return async (method, path, type, body) => {
    const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) };
    const options: RequestOptions = { host, port, method, path, agent, headers: { 'content-type': type, ...length } };
    const outgoing = request(options);
    outgoing.end(body);
    // If a response is cut off, the request emits an error too, not only the response.
    outgoing.on('error', () => undefined);
    const [answer] = (await once(outgoing, 'response')) as [IncomingMessage];
    return answer;
  };
}

function newAgent(engine: BenchEngine): Agent {
  const { ca, cert, key } = adminOf(join(engine.dataDir, 'kubeconfig'));
  return new Agent({ keepAlive: true, ca, cert, key });
}

async function measure(engine: BenchEngine, attack: Attack): Promise<string> {
  const [attacker, other] = [newAgent(engine), newAgent(engine)];
  const ask = caller(engine, other);
  await read(await ask('GET', '/healthz', 'application/json'));
  await attack.prepare?.(ask);
  await pause(2000);
  const before = await residentMebibytes(engine.pid);
  let most = before;
  let longest = 0;
  let over = false;
  const others = (async () => {
    while (!over) {
      const asked = performance.now();
      await read(await ask('GET', '/healthz', 'application/json'));
      longest = Math.max(longest, performance.now() - asked);
      most = Math.max(most, await residentMebibytes(engine.pid));
      await pause(LOOK_MILLIS);
    }
  })();
  const code = await attack.run(caller(engine, attacker)).finally(() => {
    over = true;
    return others;
  });
  attacker.destroy();
  other.destroy();
  return `| ${attack.name} | ${code} | ${longest.toFixed(0)} ms | ${(most - before).toFixed(0)} MiB |`;
}
