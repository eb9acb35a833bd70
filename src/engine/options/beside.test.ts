import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { networkNames } from '../../network/pod-network/names.ts';
import { RangeOfOtherEngineError, RangeTakenError } from '../../network/pod-network/ranges.ts';
import { rootCommand, rootProgram } from '../../platform/programs/typed-program.ts';
import { downOfOther, ofRecordedRange } from '../engine-network.ts';
import { DEFAULT_POD_CIDR, DEFAULT_SERVICE_CIDR, type EngineRecord } from '../settings.ts';
import { type BesideOption, optionsBeside, servesLifepod, startBeside } from './beside.ts';

const DEFAULTS = { podCidr: DEFAULT_POD_CIDR, serviceCidr: DEFAULT_SERVICE_CIDR };
const OWN = { podCidr: '10.1.0.0/16', serviceCidr: '10.2.0.0/16' };
const RANGE = String.raw`10\.\d+\.\d+\.0/24`;
const POD = `--pod-cidr ${RANGE}`;
const SERVICE = `--service-cidr ${RANGE}`;

test.each<[BesideOption, typeof DEFAULTS, object | undefined, string]>([
  ['--port', DEFAULTS, undefined, `--port 0 ${POD} ${SERVICE}`],
  ['--port', OWN, undefined, '--port 0'],
  ['--port', DEFAULTS, {}, '--port 0'],
  ['--pod-cidr', DEFAULTS, undefined, `${POD} ${SERVICE}`],
  ['--pod-cidr', OWN, undefined, POD],
  ['--service-cidr', { ...DEFAULTS, podCidr: OWN.podCidr }, undefined, SERVICE],
])(
  'the options beside an engine with the same %s, for %j and the record %j, are %s',
  async (option, settings, record, expected) => {
    expect(await optionsBeside(settings, record as EngineRecord | undefined, option)).toMatch(
      new RegExp(`^${expected}$`),
    );
  },
);

test('a session is advised to start the engine with the options first, because lifepod run has none for the engine', async () => {
  const settings = { ...DEFAULTS, dataDir: '/d' };
  const advice = 'choose another with --pod-cidr';
  expect(await startBeside(settings, undefined, '--pod-cidr', advice)).toMatch(
    new RegExp(`^${advice}, such as ${POD} ${SERVICE}$`),
  );
  const command = rootCommand('up --detach', '/d');
  expect(await startBeside({ ...settings, forSessions: true }, undefined, '--port', advice)).toMatch(
    new RegExp(`^first start this engine with options of its own, such as '${command} --port 0 ${POD} ${SERVICE}'$`),
  );
});

test('a recorded range that a route overlaps cannot be replaced by another one', () => {
  const overlap = 'the Pod range 10.244.0.0/16 overlaps the route 10.0.0.0/8 of the interface tun0';
  const text = (error: unknown): string => (ofRecordedRange(error, '/d') as Error).message;
  expect(text(new RangeTakenError(overlap, '--pod-cidr'))).toBe(
    `${overlap}, and the ranges that /d was created with cannot change: remove the route, for example by disconnecting the VPN or network that has added it, or choose another --data-dir`,
  );
  expect(text(new RangeOfOtherEngineError(overlap, '--pod-cidr', 'lp00000000'))).toBe(
    `${overlap}, and the ranges that /d was created with cannot change: end that engine with '${rootProgram()} down --data-dir FOLDER', with its data folder as FOLDER, or choose another --data-dir`,
  );
  expect(text(new Error('other'))).toBe('other');
});

test('the command that ends another engine names the data folder of that engine if it runs', () => {
  const { bridge } = networkNames({ dataDir: '/other', instance: '/other' });
  const error = new RangeOfOtherEngineError('the ranges overlap', '--pod-cidr', bridge);
  const running = [{ dataDir: undefined }, { dataDir: '/one' }, { dataDir: '/other' }];
  expect(downOfOther(error, 'its folder', running)).toBe(`'${rootCommand('down', '/other')}'`);
  expect(downOfOther(error, 'its folder', running.slice(0, 2))).toBe(
    `'${rootProgram()} down --data-dir FOLDER', with its folder as FOLDER`,
  );
});

test('a program that closes its connections is not an engine of lifepod', async () => {
  const server = createServer((socket) => socket.on('error', () => undefined).end('hello')).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  expect(await servesLifepod('127.0.0.1', (server.address() as AddressInfo).port)).toBe(false);
});
