// Brings the types together; defines nothing.
import './types/outfit-connection.ts';
import './types/outfit-mutations.ts';
import './types/outfit-page.ts';
import { builder } from './builder.ts';

export const schema = builder.toSchema();

// Pothos has no option for it. GraphiQL opens its documentation with this.
schema.description = `Outfits and the users who publish them: the same data as the REST listing \`/api/outfits/\`.

**Start here:** \`outfits\` gives numbered pages with their count, \`outfitConnection\` a range for scrolling,
\`outfit\` and \`user\` a single one.

**Signing in:** reading needs no token. Mutations need a bearer token in the header
\`Authorization: Bearer ...\`; its user is the owner of what is written.

**Limits:** a range has at most 100 items, and one document a limited number of objects, aliases and levels:
an error says which limit was passed. Errors that a program can act on have a code in \`extensions.code\`.`;
