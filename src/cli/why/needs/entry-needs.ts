/** Explains which of the objects and keys that the defer containers of a running Pod need do not exist. Pure. */
import { type Explanation, type Living, listed } from '../subject.ts';
import { entryFinding } from './objects.ts';

export function explainEntryNeeds(subject: Living): Explanation | undefined {
  const needs = subject.entryNeeds ?? [];
  const [first] = needs;
  if (first === undefined) return undefined;
  const findings = needs.map((need) => entryFinding(subject, need));
  const others = [...new Set(needs.map(({ entry }) => entry))].filter((entry) => entry !== first.entry);
  const actions = findings.flatMap((finding) => finding.actions);
  return {
    sentence: `${subject.name} runs, but its defer container ${first.entry} ${findings[0]?.cause}${others.length === 0 ? '' : `; ${listed(others)} also ${others.length === 1 ? 'lacks' : 'lack'} what ${others.length === 1 ? 'it needs' : 'they need'}`}.`,
    evidence: [
      ...needs.slice(1).map(({ entry }, index) => `defer container ${entry} ${findings[index + 1]?.cause}`),
      ...(needs.some(({ key }) => key === undefined)
        ? [
            'if the object existed at any time since the first app container started, its node has a copy and uses the copy',
          ]
        : []),
      'its other containers are not affected: a defer container needs these objects only when the Pod ends',
    ],
    actions: [...new Map(actions.map((action) => [action.command, action])).values()],
  };
}
