import type { CodegenConfig } from '@graphql-codegen/cli';
import { printSchema } from 'graphql';
import { schema } from './src/graphql/schema.ts';

const sdl = printSchema(schema);

/** The schema is built without a database, so this runs anywhere. */
const config: CodegenConfig = {
  schema: sdl,
  generates: {
    'src/graphql/schema.graphql': { plugins: ['schema-ast'] },
    'src/generated/rest.ts': {
      documents: 'src/rest/*.graphql',
      plugins: ['typescript-operations', 'typed-document-node'],
    },
    'src/generated/test-client.ts': {
      documents: 'test/*.graphql',
      plugins: ['typescript-operations', 'typed-document-node'],
    },
  },
  config: {
    useTypeImports: true,
    enumsAsTypes: true,
    strictScalars: true,
    scalars: { DateTime: 'string' },
  },
};

export default config;
