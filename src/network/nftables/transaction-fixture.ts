import type { Section } from './section.ts';
import { changeSection } from './transaction.ts';

/** Returns the commands of changeSection() as one text; undefined if the section must be replaced. */
export function changeText(table: string, applied: Section, desired: Section): string | undefined {
  const steps = changeSection(table, applied, desired);
  let text = '';
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value ? text : undefined;
    text += value;
  }
}
