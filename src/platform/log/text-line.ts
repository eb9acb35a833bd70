import { journalPrefix } from './journal.ts';
import { printable } from './printable.ts';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';
export type LogFormat = 'text' | 'json';

export interface LogMessage {
  time: Date;
  level: LogLevel;
  message: string;
  fields: Readonly<Record<string, unknown>>;
}

/** Faint text. Source of the codes: ECMA-48, Select Graphic Rendition. */
const DIM = 2;
const COLORS: Readonly<Record<LogLevel, number>> = { debug: DIM, info: 32, warn: 33, error: 31 };

export interface TextLineOptions {
  colors: boolean;
  /** Whether the journal of systemd receives the line. The journal stores the time itself, and reads the priority from a prefix. */
  journal?: boolean;
}

/** Escapes control characters, because texts of clients and containers may contain them. */
export function textLine({ time, level, message, fields }: LogMessage, { colors, journal }: TextLineOptions): string {
  const paint = (code: number, text: string): string => (colors ? `\u001b[${code}m${text}\u001b[0m` : text);
  const parts = [
    ...(journal === true ? [] : [paint(DIM, time.toISOString())]),
    paint(COLORS[level], level.toUpperCase().padEnd(5)),
    printable(message),
    ...Object.entries(fields)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => paint(DIM, `${name}=`) + valueText(value)),
  ];
  return `${journal === true ? journalPrefix(level) : ''}${parts.join(' ')}\n`;
}

/** JSON shows where a text with spaces or special characters ends. */
function valueText(value: unknown): string {
  const isSimple = typeof value === 'string' && /^[\w./:@%+,-]+$/.test(value);
  return isSimple ? value : printable(jsonOf(value));
}

function jsonOf(value: unknown): string {
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    // The value contains a cycle or a bigint.
    return JSON.stringify(String(value));
  }
}
