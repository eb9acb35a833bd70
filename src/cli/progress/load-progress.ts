/** Shows how far `lifepod image load` has read an archive. */
import { binarySize } from '../../machinery/binary-size.ts';
import type { LoadStep } from '../../runtime/images/load.ts';
import type { TerminalLine } from './terminal-line.ts';

/** The least time between two redraws of a step. A fast disk reads thousands of pieces per second. */
const REDRAW_MILLIS = 100;

/**
 * Returns a function to call with each step of a load. On a terminal, the function rewrites the line; otherwise it calls `say` with one
 * line for each archive, when the load of the archive begins.
 */
export function loadProgress(
  line: Pick<TerminalLine, 'isShown' | 'show'>,
  say: (line: string) => void,
  now: () => number,
): (step: LoadStep) => void {
  let last: LoadStep | undefined;
  let drawnAt = Number.NEGATIVE_INFINITY;
  return (step) => {
    const isNewStep = step.file !== last?.file || step.kind !== last?.kind;
    last = step;
    if (!line.isShown) {
      // lifepod reads the archive in an earlier step, so the only line about an archive that is not valid is its error.
      if (isNewStep && step.kind === 'loading') say(`loading ${step.file} (${binarySize(step.totalBytes)})`);
      return;
    }
    if (!isNewStep && now() - drawnAt < REDRAW_MILLIS) return;
    drawnAt = now();
    line.show(stepText(step));
  };
}

function stepText({ kind, file, doneBytes, totalBytes }: LoadStep): string {
  if (kind === 'unpacking') return `unpacking ${file}`;
  const percent = totalBytes === 0 ? 100 : Math.min(100, Math.floor((doneBytes * 100) / totalBytes));
  return `${kind} ${file}: ${binarySize(doneBytes)} of ${binarySize(totalBytes)}, ${percent}%`;
}
