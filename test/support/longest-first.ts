// The order of test files where no earlier run has left its times, as in CI: the longest begin, or one worker
// would be left with one of them at the end while the other has nothing to do.
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Files of all lanes that take long, longest first. */
const longest = [
  ...['process/mode-changes', 'documents/documents', 'process/first-start', 'admission/waiting'],
  ...[
    'database/stops',
    'graphql/live',
    'admission/webhook',
    'pages/pages',
    'database/wrong-states',
  ],
  ...['transfer/follow', 'database/patroni', 'legacy/verify', 'graphql/differential'],
  ...['process/server', 'attach/attach', 'database/disk-full', 'outfits/counts-backlog'],
  ...['transfer/import', 'graphql/invalidation', 'database/pgbouncer', 'database/old-primary'],
  ...['process/package', 'database/data-folder', 'observability/tracing', 'graphql/new-type'],
  ...['graphql/costly-documents', 'documents/running', 'outfits/range-plans', 'examples/clients'],
  ...['http/hostile-input', 'graphql/live-answers', 'legacy/modes', 'outfits/search'],
  ...['outfits/filters', 'graphql/limits', 'database/replicas', 'commands/command-line'],
  ...['outfits/writes', 'legacy/replay', 'admission/identity', 'graphql/sockets'],
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
