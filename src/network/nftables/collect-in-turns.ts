import { workInTurns } from '../../platform/work-in-turns.ts';

/** The minimum length of a piece in characters. The last piece may be shorter. */
const PIECE_LENGTH = 65_536;

/** Adds the text that the steps yield to `pieces`, and resolves with the result of the steps. Other work can run between the steps. */
export async function collectInTurns<T>(steps: Iterator<string, T>, pieces: string[]): Promise<T> {
  const betweenSteps = workInTurns();
  let text = '';
  for (;;) {
    const { done, value } = steps.next();
    if (!done) text += value;
    if (text !== '' && (done || text.length >= PIECE_LENGTH)) {
      pieces.push(text);
      text = '';
    }
    if (done) return value;
    await betweenSteps();
  }
}
