/** A failure with the reason that the waiting container shows. */
export class ActionError extends Error {
  override readonly name = 'ActionError';
  readonly reason: string;
  constructor(reason: string, message: string) {
    super(message);
    this.reason = reason;
  }
}
