// The order of test files where no earlier run has left its times, as in CI: the longest begin, or one worker
// would be left with one of them at the end while the other has nothing to do.
import { basename } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Files of all lanes that take longer than their size lets expect, longest first. */
const longest = [
  ...['clients', 'differential', 'switching', 'docs', 'costly-documents', 'visibility', 'follow'],
  ...['workers', 'first-start', 'live', 'filter-plans', 'walks', 'tracing', 'endings-storm'],
  ...['cache', 'import', 'command-line', 'server', 'kills', 'identity', 'migrations'],
];

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification) => {
      const index = longest.indexOf(basename(moduleId, '.test.ts'));
      return index < 0 ? longest.length : index;
    };
    return (await super.sort(files)).toSorted((a, b) => place(a) - place(b));
  }
}
