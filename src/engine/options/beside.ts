/** Finds out whether another engine of lifepod serves a port, and which options let two engines run on one machine. */
import { get } from 'node:https';
import { text } from 'node:stream/consumers';
import { rootCommand } from '../../platform/programs/typed-program.ts';
import { chooseFreeRanges } from '../free-ranges.ts';
import {
  DEFAULT_POD_CIDR,
  DEFAULT_SERVICE_CIDR,
  type EngineRecord,
  type Settings,
  type UpOptions,
} from '../settings.ts';

const ANSWER_MILLIS = 2_000;

/** The address at which this machine reaches a program that listens on an unspecified address. */
const LOOPBACK: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };

/** Resolves with whether the program on the port is an engine of lifepod, whose version everyone may read. */
export function servesLifepod(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const no = (): void => resolve(false);
    const signal = AbortSignal.timeout(ANSWER_MILLIS);
    // The answer is only used in a message, so the certificate of an authority that this engine does not know is sufficient.
    const options = { host: LOOPBACK[host] ?? host, port, path: '/version', rejectUnauthorized: false, agent: false };
    get({ ...options, signal }, (response) => {
      text(response).then((body) => resolve(body.includes('+lifepod.')), no);
    }).once('error', no);
  });
}

export type BesideOption = '--port' | '--pod-cidr' | '--service-cidr';

/** The settings of a starting engine, and whether a session without options for the engine starts it. */
export type StartSettings = Settings & Pick<UpOptions, 'forSessions'>;

/**
 * Resolves with the end of a sentence: `advice` with the options to give. `lifepod run` has no options for the engine, so the engine of a
 * session must be started before the session.
 */
export async function startBeside(
  settings: Pick<StartSettings, 'dataDir' | 'podCidr' | 'serviceCidr' | 'forSessions'>,
  record: EngineRecord | undefined,
  conflicting: BesideOption,
  advice: string,
): Promise<string> {
  const options = await optionsBeside(settings, record, conflicting);
  if (settings.forSessions !== true) return `${advice}, such as ${options}`;
  return `first start this engine with options of its own, such as '${rootCommand('up --detach', settings.dataDir)} ${options}'`;
}

/**
 * Resolves with options with which the engine can run beside another one: another value for `conflicting` and, unless the data folder has
 * recorded ranges, free ranges instead of the defaults.
 */
export async function optionsBeside(
  { podCidr, serviceCidr }: Pick<Settings, 'podCidr' | 'serviceCidr'>,
  record: EngineRecord | undefined,
  conflicting: BesideOption,
): Promise<string> {
  const free = await chooseFreeRanges().catch(() => ({ podCidr: 'NETWORK', serviceCidr: 'NETWORK' }));
  const isWanted = (option: BesideOption, value: string, byDefault: string): boolean =>
    conflicting === option || (record === undefined && value === byDefault);
  return [
    ...(conflicting === '--port' ? ['--port 0'] : []),
    ...(isWanted('--pod-cidr', podCidr, DEFAULT_POD_CIDR) ? [`--pod-cidr ${free.podCidr}`] : []),
    ...(isWanted('--service-cidr', serviceCidr, DEFAULT_SERVICE_CIDR) ? [`--service-cidr ${free.serviceCidr}`] : []),
  ].join(' ');
}
