/**
 * Makes the start of one command wait for its turn. The turn ends when the command has started. A disconnect does not end the turn, because
 * the runtime starts the command anyway: clients could otherwise start any number of commands at the same time.
 */

export interface CommandStart {
  /** Resolves when it is the command's turn; rejects with the signal's reason on abort. Call it at most once. */
  turn(signal: AbortSignal): Promise<void>;
  /** Ends the turn: the command has sent output or its Status, or will not be started. May be called at any time and repeatedly. */
  started(): void;
  /**
   * Must be called when the stream has ended: a turn that begins later ends immediately. A turn that has begun lasts until started() is
   * called or the node ends it.
   */
  left(): void;
}

/** `ask`: waits for the command's turn, and resolves to a function that ends the turn. */
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
