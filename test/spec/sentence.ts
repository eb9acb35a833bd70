/** The elements of the lists of the specification's sentences. */

/** A file and a part of a test's title in it; of a test that is made of a table, the name of a row. */
export type TestOf = readonly [file: string, title: string];

export interface Sentence {
  /** As the specification has it. */
  says: string;
  tests: readonly TestOf[];
  /** The parts of lifepod that the sentence, or a part of it, needs for a test and that do not exist yet: paths. */
  awaits?: readonly string[];
  /** Why the sentence, or a part of it, has no test. */
  untested?: string;
}
