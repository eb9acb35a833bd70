/** Compares the options of a command with the settings of a running engine, to which the command cannot apply them. */
import { type EngineRecord, resolveSettings, type Settings, type UpOptions } from '../settings.ts';

/** Options that do not describe the engine, or that a running engine does not need. */
const NOT_OF_ENGINE = ['dataDir', 'logLevel', 'logFormat', 'anyPort', 'forSessions'];
/** Returns whether any of the options describes the engine. `lifepod up [options] FILE` accepts such options, `lifepod run` does not. */
export const hasEngineOptions = (options: UpOptions): boolean =>
  Object.entries(options).some(([key, value]) => value !== undefined && !NOT_OF_ENGINE.includes(key));

const SETTING_NAMES: Readonly<Record<string, keyof Settings>> = { runtimeHandler: 'runtimeHandlers' };

const flagOf = (key: string): string => `--${key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;

/**
 * Returns the flags, such as `--port`, of the options whose values differ from the settings of the running engine. `record`: the record of
 * that engine. Throws a UserError if an option is not valid.
 */
export function differentOptions(options: UpOptions, record: EngineRecord | undefined): string[] {
  const asked = resolveSettings(options, record);
  const running = resolveSettings({ dataDir: options.dataDir }, record);
  return Object.entries(options).flatMap(([key, value]) => {
    const name = SETTING_NAMES[key] ?? (key as keyof Settings);
    if (
      NOT_OF_ENGINE.includes(key) ||
      value === undefined ||
      !(name in asked || name in running) ||
      (key === 'port' && value === 0)
    )
      return [];
    const isSame = JSON.stringify(asked[name]) === JSON.stringify(running[name]);
    return isSame ? [] : [flagOf(key)];
  });
}

/**
 * Returns the flags of differentOptions(), and the flags of given options that are not recorded, such as --log-level, if `args`, the
 * command line of the running engine, lacks them or has other values.
 */
export const unappliedOptions = (
  options: UpOptions,
  record: EngineRecord | undefined,
  args: readonly string[],
): string[] => [
  ...differentOptions(options, record),
  ...(['logLevel', 'logFormat', 'shutdownOnStop'] as const)
    .filter((key) => options[key] !== undefined && !hasOption(args, flagOf(key), options[key]))
    .map((key) => flagOf(key)),
];

const hasOption = (args: readonly string[], flag: string, value: string | boolean): boolean =>
  args.some(
    (arg, index) => (arg === flag && (value === true || args[index + 1] === value)) || arg === `${flag}=${value}`,
  );
