import { InterruptedError } from '../signals.ts';

/** Returns a signal that aborts with an InterruptedError on SIGINT and SIGTERM, for a command that changes nothing if it is interrupted. */
export function interruption(): AbortSignal {
  const controller = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const) {
    process.once(name, () =>
      controller.abort(new InterruptedError(`interrupted by ${name}: nothing has been changed`, name)),
    );
  }
  return controller.signal;
}
