/**
 * The specification of defer containers, version 2, sentence by sentence, each with the tests that verify it. test/tidy/spec.test.ts checks
 * that these tests exist, and that no awaited part of lifepod (`awaits`) exists already.
 */

import { fieldSentences, validationSentences } from './defer-fields.ts';
import { changes, lives, survival, workloads } from './defer-lives.ts';
import { moves } from './defer-moves.ts';
import { termination } from './defer-order.ts';
import { reasons } from './defer-reasons.ts';
import { shown } from './defer-status.ts';
import { imageSentences, knowledge, resourceSentences } from './defer-surroundings.ts';
import { time } from './defer-time.ts';
import { occasions } from './defer-when.ts';
import type { Sentence } from './sentence.ts';

export const specification: Readonly<Record<string, readonly Sentence[]>> = {
  Fields: fieldSentences,
  Validation: validationSentences,
  'When the list runs': [...occasions, ...reasons],
  'The order of a termination': termination,
  Time: [...time, ...moves],
  'Status and events': shown,
  'What an entry can know': knowledge,
  Resources: resourceSentences,
  'Images, references and volumes': imageSentences,
  'Surviving the agent': survival,
  Workloads: workloads,
  'Lives, played through': lives,
  'Changes from version 1': changes,
};
