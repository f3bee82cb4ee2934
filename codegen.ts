// Part of npm run generate: the schema as text, and types for the documents of REST and of tests.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { codegen } from '@graphql-codegen/core';
import * as schemaAst from '@graphql-codegen/schema-ast';
import * as documentNode from '@graphql-codegen/typed-document-node';
import * as operations from '@graphql-codegen/typescript-operations';
import { lexicographicSortSchema, parse, printSchema } from 'graphql';
import { schema } from './src/graphql/schema.ts';

// It is built without a database, so this runs anywhere.
const sdl = parse(printSchema(lexicographicSortSchema(schema)));

await generate('src/graphql/schema.graphql', { schemaAst });
await generate('src/generated/rest.ts', { operations, documentNode }, 'src/rest');
await generate('src/generated/test-client.ts', { operations, documentNode }, 'test');

/** @param folder whose documents are typed */
async function generate(filename: string, pluginMap: object, folder?: string): Promise<void> {
  const names = folder ? readdirSync(folder).filter((name) => name.endsWith('.graphql')) : [];
  const text = await codegen({
    filename,
    schema: sdl,
    documents: names.map((name) => {
      const location = `${folder}/${name}`;
      return { location, document: parse(readFileSync(location, 'utf8')) };
    }),
    pluginMap: { ...pluginMap },
    plugins: Object.keys(pluginMap).map((name) => ({ [name]: {} })),
    config: {
      useTypeImports: true,
      enumsAsTypes: true,
      strictScalars: true,
      scalars: { DateTime: 'string' },
    },
  });
  writeFileSync(filename, text);
}
