// Numbered pages (OutfitPage): outfits(...), User.outfits(...).
import type { InputShapeFromFields } from '@pothos/core';
import {
  createOutfitList,
  type OutfitPage as Page,
  PastTheEndError,
  weightOf,
} from '../../outfits/lists/list.ts';
import type { PageRequest } from '../../outfits/lists/statements.ts';
import { builder } from '../builder.ts';
import type { Context } from '../context.ts';
import type { CountItems, WeighFilter } from '../engine/cost.ts';
import { badUserInput, pageNotFound } from '../errors.ts';
import { Outfit } from './outfit.ts';
import { filterOf, OutfitFilter, OutfitOrdering, orderingOf } from './outfit-arguments.ts';
import { User } from './user.ts';

const OutfitPage = builder.objectRef<Page>('OutfitPage').implement({
  description: 'One page of a numbered list of outfits.',
  fields: (t) => ({
    count: t.exposeInt('count', { description: 'Outfits in the whole list, across all pages.' }),
    pageCount: t.exposeInt('pageCount', { description: 'Pages in the list; 1 when it is empty.' }),
    page: t.exposeInt('page', { description: 'Number of this page, from 1.' }),
    nextPage: t.int({
      nullable: true,
      description: 'Number of the next page, or null on the last one.',
      resolve: ({ page, pageCount }) => (page < pageCount ? page + 1 : null),
    }),
    previousPage: t.int({
      nullable: true,
      description: 'Number of the previous page, or null on the first one.',
      resolve: ({ page }) => (page > 1 ? page - 1 : null),
    }),
    results: t.field({
      type: [Outfit],
      description: 'The outfits of this page.',
      resolve: ({ rows }) => [...rows],
    }),
  }),
});

const pageArguments = builder.args((t) => ({
  ordering: t.field({
    type: OutfitOrdering,
    description: 'What to sort by; newest first when omitted.',
  }),
  page: t.int({ description: 'Number of the page, from 1; the first page when omitted.' }),
  last: t.boolean({
    description: 'Whether to give the last page, whichever that is, instead of `page`.',
  }),
  filter: t.field({ type: OutfitFilter, description: 'What narrows the list.' }),
}));

/** `results` is the only field with objects: a page of them. */
const countItems: CountItems = (_args, { pageSize }) => pageSize;

export const weighFilter: WeighFilter = ({ filter, ordering }: ListArguments) =>
  weightOf(filterOf(filter), orderingOf(ordering));

/** An index finds the outfits of one user, with any filter. */
export const weighFilterOfUser: WeighFilter = (args) => Math.min(weighFilter(args), 2);

type ListArguments = Partial<Pick<PageArguments, 'filter' | 'ordering'>>;
type PageArguments = InputShapeFromFields<typeof pageArguments>;

builder.queryField('outfits', (t) =>
  t.field({
    type: OutfitPage,
    description: 'One page of all outfits; past the end, the error PAGE_NOT_FOUND.',
    args: pageArguments,
    extensions: { countItems, weighFilter },
    resolve: (_root, args, context) =>
      resolvePage(
        args,
        context,
        createOutfitList(context.read, context.visibility, filterOf(args.filter)).page,
      ),
  }),
);

builder.prismaObjectField(User, 'outfits', (t) =>
  t.field({
    type: OutfitPage,
    description: 'One page of the outfits of this user.',
    args: pageArguments,
    extensions: { countItems, weighFilter: weighFilterOfUser },
    resolve: ({ id }, args, context) =>
      resolvePage(args, context, context.userLists(id, filterOf(args.filter)).page),
  }),
);

async function resolvePage(
  { ordering, page, last }: PageArguments,
  { config }: Context,
  find: (request: PageRequest) => Promise<Page>,
): Promise<Page> {
  if (typeof page === 'number' && last) throw badUserInput('Give either page or last, not both.');
  if (typeof page === 'number' && page < 1) {
    throw badUserInput(`page must be 1 or more, but it is ${page}.`);
  }
  try {
    return await find({
      ordering: orderingOf(ordering),
      page: last ? 'last' : (page ?? 1),
      pageSize: config.pageSize,
    });
  } catch (error) {
    throw error instanceof PastTheEndError ? pageNotFound(error.message) : error;
  }
}
