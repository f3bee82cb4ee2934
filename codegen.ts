// Part of npm run generate: the functions of the database in its migrations, the schema as SDL, types of the documents of
// REST and of the tests, and what the settings are for, as docs/settings.md says it.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { codegen } from '@graphql-codegen/core';
import * as documentNode from '@graphql-codegen/typed-document-node';
import * as operations from '@graphql-codegen/typescript-operations';
import { parse, visit } from 'graphql';
import { writeMigrations } from './prisma/functions.ts';
import { printSdl, schema } from './src/graphql/schema.ts';

writeMigrations();

// The schema needs no database.
const sdl = printSdl(schema);
writeFileSync('docs/schema.graphql', sdl);
await generate('src/generated/rest.ts', 'src/rest', 'src/pages', 'src/transfer/export');
await generate('src/generated/test-client.ts', 'test/support/graphql');

// The first sentence of each row of the table.
const purposes = [
  ...readFileSync('docs/settings.md', 'utf8').matchAll(
    /^\| `(\w+)` \|.*?\| (\S.*?\.)(?: .*)? \|$/gm,
  ),
].map(([, name, text = '']) => [
  name,
  text.replace(/:? see \[.*?\]\(.*?\)| \(\[.*?\]\(.*?\)\)|[`\]]|\(\S+\.md\S*\)|\[/g, ''),
]);
writeFileSync(
  'src/generated/settings.ts',
  `export const settingPurposes: Readonly<Record<string, string>> = ${JSON.stringify(Object.fromEntries(purposes), null, 2)};\n`,
);

/** @param folders folders of the documents */
async function generate(filename: string, ...folders: string[]): Promise<void> {
  const paths = folders.flatMap((folder) => readdirSync(folder).map((name) => `${folder}/${name}`));
  const text = await codegen({
    filename,
    schema: parse(sdl),
    documents: paths
      .filter((path) => path.endsWith('.graphql'))
      // The schema does not have @route: the gateway reads it.
      .map((location) => ({
        location,
        document: visit(parse(readFileSync(location, 'utf8')), {
          Directive: ({ name }) => (name.value === 'route' ? null : undefined),
        }),
      })),
    pluginMap: { operations, documentNode },
    plugins: [{ operations: {} }, { documentNode: {} }],
    config: {
      useTypeImports: true,
      enumsAsTypes: true,
      strictScalars: true,
      scalars: { DateTime: 'string' },
    },
  });
  writeFileSync(filename, text);
}
