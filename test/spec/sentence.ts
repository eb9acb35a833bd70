/** The types of the specification's lists of sentences. */

/** A file, and a part of the title of a test in it; for a test with a table, the part may be the name of a row. */
export type TestOf = readonly [file: string, title: string];

export interface Sentence {
  /** Quoted from the specification. */
  says: string;
  tests: readonly TestOf[];
  /** Paths of parts of lifepod that do not exist yet and that a test of the sentence, or of a part of it, needs. */
  awaits?: readonly string[];
  /** Why the sentence, or a part of it, has no test. */
  untested?: string;
}
