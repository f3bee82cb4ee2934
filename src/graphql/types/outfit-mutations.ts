// createOutfit, updateOutfit, deleteOutfit, likeOutfit, unlikeOutfit.
import { invalidKey, notAuthenticated } from '../../errors.ts';
import type { OutfitRow } from '../../outfits/row.ts';
import { findFirstAnswer, type RepeatableRequest } from '../../outfits/writes/idempotency.ts';
import {
  checkChanges,
  checkNewOutfit,
  type InputError,
  type OutfitInput,
} from '../../outfits/writes/input.ts';
import { createOutfit, deleteOutfit, setLike, updateOutfit } from '../../outfits/writes/writes.ts';
import { builder } from '../builder.ts';
import type { Context } from '../context.ts';
import { globalIdOf, identityArguments, readIdentity } from './node.ts';
import { Outfit } from './outfit.ts';
import { CreateOutfitInput, InputErrorRef, UpdateOutfitInput } from './outfit-input.ts';

// Nullable fields: an error in one must not remove the results of the others.
builder.mutationType({
  description:
    'Entry points for writing. They need a bearer token, which identifies the user. Fields run in order; one that fails is null and does not undo those before it. The header `Idempotency-Key` may be `extensions.idempotencyKey` of the request instead, as over a WebSocket.',
});

interface Written {
  readonly outfit: OutfitRow | null;
  readonly errors: readonly InputError[];
}

const payload = (name: string, description: string) =>
  builder.objectRef<Written>(name).implement({
    description,
    fields: (t) => ({
      outfit: t.expose('outfit', {
        type: Outfit,
        nullable: true,
        description: 'The saved outfit; null if nothing was saved.',
      }),
      errors: t.expose('errors', {
        type: [InputErrorRef],
        description: 'Validation errors by field; empty if the input is valid.',
      }),
    }),
  });

const CreateOutfitPayload = payload('CreateOutfitPayload', 'Result of createOutfit.');
const UpdateOutfitPayload = payload('UpdateOutfitPayload', 'Result of updateOutfit.');

builder.mutationField('createOutfit', (t) =>
  t.field({
    type: CreateOutfitPayload,
    nullable: true,
    description:
      'Publishes an outfit of the viewer. With the header `Idempotency-Key`, the same request sent again gives the first answer again for 24 hours, and another one with that key is refused with 422.',
    args: {
      input: t.arg({ type: CreateOutfitInput, required: true, description: 'The new outfit.' }),
      validateOnly: t.arg.boolean({ description: 'Whether to validate without writing.' }),
    },
    resolve: async (_root, { input: given, validateOnly }, context) => {
      const input = omitNulls(given);
      const { userId } = requireViewer(context);
      const request = requestOf(context, userId, input);
      // Before validation: a reused idempotency key is refused even if the input is invalid.
      const first = request && (await findFirstAnswer(context.read, request));
      const { values, errors } = checkNewOutfit(input, context.config);
      if (errors) return { outfit: null, errors };
      if (validateOnly) return { outfit: null, errors: [] };
      const outfit = first ?? (await createOutfit(context, userId, values, request));
      return { outfit, errors: [] };
    },
  }),
);

builder.mutationField('updateOutfit', (t) =>
  t.field({
    type: UpdateOutfitPayload,
    nullable: true,
    description:
      'Changes an outfit of the viewer, and sets its modified and modificationDevice. The outfit of another user is an error with the code FORBIDDEN, except for staff.',
    args: {
      ...identityArguments,
      input: t.arg({ type: UpdateOutfitInput, required: true, description: 'The changes.' }),
    },
    resolve: async (_root, { input: given, ...identity }, context) => {
      const input = omitNulls(given, 'video');
      const { userId, isStaff } = requireViewer(context);
      const id = readIdentity('Outfit', identity);
      const { values, errors } = checkChanges(input, context.config);
      if (errors) return { outfit: null, errors };
      const own = { id, userId, isStaff };
      const outfit = await updateOutfit(context, own, values);
      logStaff(context, 'changed', id, outfit.userId);
      return { outfit, errors: [] };
    },
  }),
);

const DeleteOutfitPayload = builder
  .objectRef<{ deletedOutfitId: string }>('DeleteOutfitPayload')
  .implement({
    description: 'Result of deleteOutfit.',
    fields: (t) => ({
      // Not "id": the normalized caches of clients would take this payload for the outfit.
      deletedOutfitId: t.exposeID('deletedOutfitId', {
        nullable: true,
        description: 'Global identifier of the deleted outfit.',
      }),
    }),
  });

builder.mutationField('deleteOutfit', (t) =>
  t.field({
    type: DeleteOutfitPayload,
    nullable: true,
    description:
      'Deletes an outfit of the viewer; that of another user is FORBIDDEN, except for staff.',
    args: identityArguments,
    resolve: async (_root, identity, context) => {
      const { userId, isStaff } = requireViewer(context);
      const id = readIdentity('Outfit', identity);
      const own = { id, userId, isStaff };
      const { userId: ownerId } = await deleteOutfit(context, own);
      logStaff(context, 'deleted', id, ownerId);
      return { deletedOutfitId: globalIdOf('Outfit', id) };
    },
  }),
);

const LikePayload = builder.objectRef<{ outfit: OutfitRow }>('LikePayload').implement({
  description: 'Result of likeOutfit and unlikeOutfit.',
  fields: (t) => ({
    outfit: t.expose('outfit', { type: Outfit, description: 'The outfit with its new likes.' }),
  }),
});

const likeMutations = {
  likeOutfit: 'Likes an outfit as the viewer. Idempotent.',
  unlikeOutfit: 'Removes the like of the viewer. Idempotent.',
};
for (const [name, description] of Object.entries(likeMutations)) {
  builder.mutationField(name, (t) =>
    t.field({
      type: LikePayload,
      nullable: true,
      description,
      args: identityArguments,
      resolve: async (_root, identity, context) => {
        const { userId } = requireViewer(context);
        const like = { id: readIdentity('Outfit', identity), userId, liked: name === 'likeOutfit' };
        return { outfit: await setLike(context, like, context.visibility) };
      },
    }),
  );
}

/** Clients in Go send null for what is not set. @param removable may be null, which means that there is none */
function omitNulls(input: OutfitInput, removable?: keyof OutfitInput): OutfitInput {
  const entries = Object.entries(input);
  return Object.fromEntries(
    entries.filter(([name, value]) => value !== null || name === removable),
  );
}

export function requireViewer({ viewer }: Context) {
  if (!viewer) throw notAuthenticated();
  return viewer;
}

/** Logs who changed or deleted the outfit of another user. */
function logStaff({ viewer, log }: Context, what: string, outfit: number, owner: number): void {
  if (owner === viewer?.userId) return;
  log?.info({ staff: viewer?.userId, outfit, owner }, `Staff has ${what} an outfit.`);
}

function requestOf(
  { idempotencyKey: key }: Context,
  userId: number,
  input: unknown,
): RepeatableRequest | undefined {
  if (key === undefined) return undefined;
  if (!/^[\x20-\x7e]{1,255}$/.test(key)) throw invalidKey();
  return { userId, key, input };
}
