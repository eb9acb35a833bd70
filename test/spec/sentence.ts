/** The file of a test and a part of its title. For a test with a table, the part may be the title of a row. */
export type TestOf = readonly [file: string, title: string];

export interface Sentence {
  /** The sentence as it is in the specification. */
  says: string;
  tests: readonly TestOf[];
  /** Paths of parts of lifepod that do not exist yet. Without them, the sentence or a part of it cannot be tested. */
  awaits?: readonly string[];
  /** Why the sentence, or a part of it, has no test. */
  untested?: string;
}
