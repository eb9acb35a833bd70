/**
 * The start of one command: it waits for its turn, which ends as soon as the command has started. A client that disconnects does
 * not end the turn, because the runtime starts the command anyway. Otherwise clients that disconnect at once could start any
 * number of commands at the same time.
 */

export interface CommandStart {
  /** Resolves when it is the command's turn; rejects with the signal's reason on abort. */
  turn(signal: AbortSignal): Promise<void>;
  /** Call it when the command has written output, or will not be started. May be called at any time and repeatedly. */
  started(): void;
  /** Call it when nothing more will be known about the command. A turn that has begun lasts until the gate ends it. */
  left(): void;
}

/** `ask` is called at most once; it resolves to the function that ends the turn. */
export function createCommandStart(ask: (signal: AbortSignal) => Promise<() => void>): CommandStart {
  let over = false;
  let endTurn = (): void => undefined;
  return {
    async turn(signal) {
      const end = await ask(signal);
      if (over) end();
      else endTurn = end;
    },
    started() {
      over = true;
      endTurn();
    },
    left() {
      over = true;
    },
  };
}
