// What apps ask of a listing beside its pages, rightly and wrongly.
import type { Inquiry } from './inquiry.ts';
import { nonsense } from './orderings.ts';
import type { Method, Side } from './side.ts';

const kept = 'zzz=1&a=%20b&zzz=2&%C3%A9=~*';

/** Never a write: nothing that compares may change anything. */
const questions: readonly (readonly [method: Method, query: string])[] = [
  ['GET', '?page=1'],
  ['GET', '?page=0'],
  ['GET', '?page=-1'],
  ['GET', '?page=abc'],
  ['GET', '?page=1.0'],
  ['GET', '?page=2&page=1'],
  ['GET', '?ordering='],
  ['GET', `?ordering=${nonsense}`],
  ['GET', `?${kept}`],
  ['HEAD', ''],
  ['HEAD', '?page=abc'],
  ['OPTIONS', ''],
];

/** Pages behind the first: which records they have is judged with all pages. */
const furtherPages = ['?page=last', `?page=2&${kept}`];

const ask = (theirs: Side, ours: Side) => (method: Method, query: string) => ({
  method,
  there: theirs.path + query,
  here: ours.path + query,
});

/** @param pages how many the source has */
export function askBeside(theirs: Side, ours: Side, pages: number): Inquiry[] {
  const withoutSlash = ({ path }: Side) => path.replace(/\/+$/, '');
  const inquire = ask(theirs, ours);
  return [
    ...questions.map(([method, query]) => inquire(method, query)),
    inquire('GET', `?page=${pages + 1}`),
    {
      method: 'GET',
      there: `${withoutSlash(theirs)}?${kept}`,
      here: `${withoutSlash(ours)}?${kept}`,
    },
  ];
}

/** The plain listing, which is the first page too. */
export const askPlain = (theirs: Side, ours: Side): Inquiry => ask(theirs, ours)('GET', '');

export function askFurtherPages(theirs: Side, ours: Side): Inquiry[] {
  return furtherPages.map((query) => ask(theirs, ours)('GET', query));
}
