import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * In a clone without results of an earlier run, Vitest starts the largest files of a project first. These files are small, but each takes a
 * tenth of the time of its project or more. If they started last, the other workers would have nothing to do at the end.
 */
const LONG =
  /\/(?:demo|machine-not-ready|upgrade|first-start|sessions|images|defer-engine|package|stale-flows|down-now|node)\.test\.ts$/;

export class LongFilesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const projects = Map.groupBy(await super.sort(files), ({ project }) => project.name);
    return [...projects.values()].flatMap((own) => {
      const { long = [], other = [] } = Object.groupBy(own, ({ moduleId }) => (LONG.test(moduleId) ? 'long' : 'other'));
      return [...long, ...other];
    });
  }
}
