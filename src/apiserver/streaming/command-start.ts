/** The start of one command: it waits for its turn, and makes way for others as soon as it has started. */

export interface CommandStart {
  /** Resolves when it is the command's turn; rejects with the signal's reason on abort. */
  turn(signal: AbortSignal): Promise<void>;
  /** The command has written something, or will not start any more. May be called at any time, and again. */
  started(): void;
}

/** `ask` is called once at most; what it resolves with ends the turn. */
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
  };
}
