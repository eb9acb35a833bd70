/**
 * The start of one command: it waits for its turn, and makes way for others as soon as it has started. A client that leaves
 * does not end the turn of its command, which the runtime starts all the same: else those who leave at once would have any
 * number of commands start at the same time.
 */

export interface CommandStart {
  /** Resolves when it is the command's turn; rejects with the signal's reason on abort. */
  turn(signal: AbortSignal): Promise<void>;
  /** The command has written something, or the runtime will not start it. May be called at any time, and again. */
  started(): void;
  /** Nothing more will be heard of the command. A turn that has come goes on until the gate ends it. */
  left(): void;
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
    left() {
      over = true;
    },
  };
}
