// The order of test files where no earlier run has left its times, as in CI: the longest begin, or one worker
// would be left with one of them at the end while the other has nothing to do.
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Files of all lanes that take longer than their size lets expect, longest first. */
const longest = [
  ...[
    'documents/documents',
    'process/image',
    'process/package',
    'graphql/live',
    'observability/tracing',
  ],
  ...['clients/clients', 'documents/running', 'graphql/differential'],
  ...['graphql/costly-documents', 'outfits/visibility', 'transfer/follow', 'process/first-start'],
  ...['outfits/filter-plans', 'outfits/walks', 'graphql/invalidation', 'graphql/answer-cache'],
  ...['transfer/import', 'commands/command-line', 'process/server', 'database/kills'],
  ...['admission/identity', 'database/migrations'],
];

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification) => {
      const [, name = ''] = /test\/(.*?)(?:\.\w+)?\.test\.ts$/.exec(moduleId) ?? [];
      const index = longest.indexOf(name);
      return index < 0 ? longest.length : index;
    };
    return (await super.sort(files)).toSorted((a, b) => place(a) - place(b));
  }
}
