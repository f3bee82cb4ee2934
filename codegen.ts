// Part of npm run generate: the schema as SDL, and types of the documents of REST and of the tests.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { codegen } from '@graphql-codegen/core';
import * as documentNode from '@graphql-codegen/typed-document-node';
import * as operations from '@graphql-codegen/typescript-operations';
import { parse } from 'graphql';
import { schema } from './src/graphql/schema.ts';
import { printSdl } from './src/graphql/sdl.ts';

// The schema needs no database.
const sdl = printSdl(schema);
writeFileSync('src/graphql/schema.graphql', sdl);
await generate('src/generated/rest.ts', 'src/rest');
await generate('src/generated/test-client.ts', 'test/support/graphql');

/** @param folder folder of the documents */
async function generate(filename: string, folder: string): Promise<void> {
  const names = readdirSync(folder).filter((name) => name.endsWith('.graphql'));
  const text = await codegen({
    filename,
    schema: parse(sdl),
    documents: names.map((name) => {
      const location = `${folder}/${name}`;
      return { location, document: parse(readFileSync(location, 'utf8')) };
    }),
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
