// The enum of orderings; its inner values are the REST spellings.
import { defaultOrdering, type Ordering, orderingFields } from '../../outfits/ordering.ts';
import { builder } from '../builder.ts';

// Each value stands for its REST spelling; the REST error lists them in this order.
const orderings = {
  CREATED_ASC: { value: 'created', description: 'Oldest first.' },
  CREATED_DESC: {
    value: '-created',
    description: 'Newest first; the default.',
    extensions: { isDefault: true },
  },
  ID_ASC: { value: 'id', description: 'Lowest id first.' },
  ID_DESC: { value: '-id', description: 'Highest id first.' },
  LIKE_COUNT_ASC: { value: 'like_count', description: 'Fewest likes first.' },
  LIKE_COUNT_DESC: { value: '-like_count', description: 'Most likes first.' },
  MODIFIED_ASC: { value: 'modified', description: 'Longest unchanged first.' },
  MODIFIED_DESC: { value: '-modified', description: 'Most recently changed first.' },
} as const;

export const OutfitOrdering = builder.enumType('OutfitOrdering', {
  description: 'What a list of outfits is sorted by. Ties are broken by id in the same direction.',
  values: orderings,
});

type Spelling = (typeof OutfitOrdering)['$inferType'];

/** The ordering that an enum value stands for; the default one when there is none. */
export function orderingOf(spelling: Spelling | null | undefined): Ordering {
  if (!spelling) return defaultOrdering;
  const name = spelling.replace('-', '') as keyof typeof orderingFields;
  return { field: orderingFields[name], direction: spelling.startsWith('-') ? 'desc' : 'asc' };
}
