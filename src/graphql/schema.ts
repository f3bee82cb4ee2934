// Brings the types together; defines nothing.
import './types/outfit-connection.ts';
import './types/outfit-mutations.ts';
import './types/outfit-page.ts';
import './types/viewer.ts';
import { builder } from './builder.ts';
import { addSubscription } from './subscription.ts';

export const schema = addSubscription(builder.toSchema());

// Pothos has no option for it. GraphiQL opens its documentation with this.
schema.description = `Outfits and the users who publish them: the same data as the REST listing \`/api/outfits/\`.

**Start here:** \`outfits\` gives numbered pages with their count, \`outfitConnection\` a range for scrolling,
\`outfit\`, \`user\` and \`node\` a single one, \`viewer\` who is asking. \`filter\` narrows any list, and searches it.
A subscription keeps an answer up to date.

**Signing in:** reading needs no token. Mutations need a bearer token in the header
\`Authorization: Bearer ...\`; its user is the owner of what is written.

**Limits:** a range has at most 100 items, and one document a limited number of objects, aliases and levels:
an error says which limit was passed. Errors that a program can act on have a code in \`extensions.code\`.`;
