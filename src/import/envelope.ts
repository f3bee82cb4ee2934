// What makes a page, as far as reading it goes.
import { z } from 'zod';

/** A page of a listing, as far as reading it needs to know. */
export type Envelope = z.output<typeof envelope>;

const envelope = z.object({
  count: z.int().min(0).optional(),
  next: z.string().nullable(),
  previous: z.string().nullable().optional(),
  results: z.array(z.unknown()),
});

/** The value as a page envelope, or undefined when it is none. */
export function asEnvelope(value: unknown): Envelope | undefined {
  return envelope.safeParse(value).data;
}

/** Whether the links of a page name no ordering, so that its records are in the default one. */
export function isInDefaultOrder({ next, previous }: Envelope): boolean {
  return [next, previous].every((link) => {
    const query = link?.split('?', 2)[1];
    return !new URLSearchParams(query).getAll('ordering').at(-1);
  });
}
