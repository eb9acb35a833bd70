/** What a list of a specification's sentences is made of. */

/** A file and a part of a test's title in it; of tests that are made of a table, the name of a row. */
export type TestOf = readonly [file: string, title: string];

export interface Sentence {
  says: string;
  tests: readonly TestOf[];
}
