/** Says that the API server does not answer, while a command waits for it. */
import { systemTimers } from '../../platform/node-js.ts';
import { terminalLine } from './terminal-line.ts';

/** A command fails if the API server is silent for this long. */
export const SILENCE_MILLIS = 30_000;

const SLOW_MILLIS = 5000;
const SLOW = 'the API server has not answered for 5 s: waiting for it';

/** Returns a function to call for each request. It returns a function to call when the request has ended. Says at most one sentence. */
export function slowNotice(
  timers = systemTimers(),
  say = (line: string): unknown => terminalLine.printAbove(process.stderr, `lifepod: ${line}\n`),
): () => () => void {
  let isSaid = false;
  return () => {
    const timer = timers.at(timers.now() + SLOW_MILLIS, () => {
      if (!isSaid) say(SLOW);
      isSaid = true;
    });
    return () => timer.cancel();
  };
}

/** Returns the options of a client for a command: how long it waits for the API server, and what it says meanwhile. */
export const patience = () => ({ silenceMillis: SILENCE_MILLIS, sent: slowNotice() });
