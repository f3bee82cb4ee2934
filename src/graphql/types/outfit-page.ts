// Numbered pages (OutfitPage): outfits(...), User.outfits(...).
import type { InputShapeFromFields } from '@pothos/core';
import type { OutfitFilter as FilterOfList } from '../../outfits/filter.ts';
import {
  createOutfitList,
  type OutfitList,
  type OutfitPage,
  weightOf,
} from '../../outfits/lists/list.ts';
import { builder } from '../builder.ts';
import type { Context } from '../context.ts';
import { badUserInput, pageNotFound, requireRange } from '../errors.ts';
import type { CountItems, WeighFilter } from '../plugins/cost.ts';
import { Outfit } from './outfit.ts';
import {
  filterOf,
  isTooShort,
  listArguments,
  orderingOf,
  searchTooShort,
} from './outfit-arguments.ts';
import { User } from './user.ts';

interface Page extends OutfitPage {
  readonly searchTooShort: boolean;
}

function pageCountOf({ count, pageSize }: OutfitPage): number {
  return Math.max(1, Math.ceil(count / pageSize));
}

function pageNumberOf({ offset, pageSize }: Page): number {
  return Math.floor(offset / pageSize) + 1;
}

const OutfitPageRef = builder.objectRef<Page>('OutfitPage').implement({
  description: 'One page of a numbered list of outfits.',
  fields: (t) => ({
    count: t.exposeInt('count', { description: 'Outfits in the complete list, across all pages.' }),
    pageCount: t.int({
      description: 'Pages in the list; 1 when it is empty.',
      resolve: pageCountOf,
    }),
    page: t.int({ description: 'Number of this page, from 1.', resolve: pageNumberOf }),
    nextPage: t.int({
      nullable: true,
      description: 'Number of the next page, or null on the last one.',
      resolve: (page) => (pageNumberOf(page) < pageCountOf(page) ? pageNumberOf(page) + 1 : null),
    }),
    previousPage: t.int({
      nullable: true,
      description: 'Number of the previous page, or null on the first one.',
      // Behind the end, which an offset may be, it is the last one.
      resolve: (page) => Math.min(pageNumberOf(page) - 1, pageCountOf(page)) || null,
    }),
    nextOffset: t.int({
      nullable: true,
      description: '`offset` of the next page, or null on the last one.',
      resolve: ({ count, offset, pageSize }) =>
        offset + pageSize < count ? offset + pageSize : null,
    }),
    previousOffset: t.int({
      nullable: true,
      description: '`offset` of the previous page, or null on the first one.',
      resolve: ({ offset, pageSize }) => (offset > 0 ? Math.max(0, offset - pageSize) : null),
    }),
    results: t.field({
      type: [Outfit],
      description: 'The outfits of this page.',
      resolve: ({ rows }) => [...rows],
    }),
    searchTooShort: t.exposeBoolean('searchTooShort', searchTooShort),
  }),
});

/** REST reads an argument with a range as Django REST Framework reads sizes. */
const ranges = { pageSize: [1, 100], offset: [0, 2_147_483_646] } as const;

const pageArguments = builder.args((t) => ({
  ...listArguments,
  page: t.int({ description: 'Number of the page, from 1; the first page when omitted.' }),
  last: t.boolean({
    description: 'Whether to return the last page, instead of `page`.',
  }),
  pageSize: t.int({
    description: 'Outfits per page, from 1 to 100; the setting PAGE_SIZE when omitted.',
    extensions: { range: ranges.pageSize },
  }),
  offset: t.int({
    description:
      'Number of outfits to skip, instead of `page`. Past the end the page is empty, without an error.',
    extensions: { range: ranges.offset },
  }),
}));

/** `results` is the only field with objects: a page of them. */
const countItems: CountItems = ({ pageSize: given }: ListArguments, { pageSize }) => {
  const [least, most] = ranges.pageSize;
  // Outside of the range, the field is an error.
  return Math.min(Math.max(given ?? pageSize, least), given ? most : pageSize);
};

export const weighFilter: WeighFilter = ({ filter, ordering }: ListArguments) =>
  weightOf(filterOf(filter), orderingOf(ordering));

/** An index finds the outfits of one user, with any filter. */
export const weighFilterOfUser: WeighFilter = (args) => Math.min(weighFilter(args), 2);

type ListArguments = Partial<Pick<PageArguments, 'filter' | 'ordering' | 'pageSize'>>;
type PageArguments = InputShapeFromFields<typeof pageArguments>;

builder.queryField('outfits', (t) =>
  t.field({
    type: OutfitPageRef,
    nullable: true,
    description: 'One page of all outfits; past the end, the error PAGE_NOT_FOUND.',
    args: pageArguments,
    extensions: { countItems, weighFilter },
    resolve: (_root, args, context) =>
      resolvePage(args, context, (filter) =>
        createOutfitList(context.read, context.visibility, filter),
      ),
  }),
);

builder.prismaObjectField(User, 'outfits', (t) =>
  t.field({
    type: OutfitPageRef,
    nullable: true,
    description: 'One page of the outfits of this user.',
    args: pageArguments,
    extensions: { countItems, weighFilter: weighFilterOfUser },
    resolve: ({ id }, args, context) =>
      resolvePage(args, context, (filter) => context.userLists(id, filter)),
  }),
);

async function resolvePage(
  args: PageArguments,
  { config }: Context,
  listOf: (filter: FilterOfList) => OutfitList,
): Promise<Page> {
  const { ordering, page, last, offset } = args;
  if (typeof page === 'number' && last) throw badUserInput('Give either page or last, not both.');
  if (typeof offset === 'number' && (typeof page === 'number' || last)) {
    throw badUserInput('Give either offset or a page, not both.');
  }
  requireRange('page', page, [1]);
  const pageSize = requireRange('pageSize', args.pageSize, ranges.pageSize) ?? config.pageSize;
  requireRange('offset', offset, ranges.offset);
  const start = last ? 'last' : (offset ?? ((page ?? 1) - 1) * pageSize);
  const filter = filterOf(args.filter);
  const request = { ordering: orderingOf(ordering), offset: start, pageSize } as const;
  const found = await listOf(filter).page(request);
  // A page of any number: the next letter of the search decides which there are.
  if (isTooShort(filter)) return { ...found, offset: 0, searchTooShort: true };
  const pageCount = pageCountOf(found);
  if (typeof page === 'number' && page > pageCount) {
    throw pageNotFound(`Page ${page} does not exist: the last page is ${pageCount}.`);
  }
  return { ...found, searchTooShort: false };
}
