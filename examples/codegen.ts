import type { CodegenConfig } from '@graphql-codegen/cli';
import { addTypenameSelectionDocumentTransform } from '@graphql-codegen/client-preset';

const config: CodegenConfig = {
  // In an app of your own: a copy of it, of the version that you run.
  schema: '../docs/schema.graphql',
  documents: 'shared/documents.ts',
  generates: {
    'shared/gql/': {
      preset: 'client',
      presetConfig: { fragmentMasking: false, persistedDocuments: true },
      documentTransforms: [addTypenameSelectionDocumentTransform],
      config: { enumsAsTypes: true, useTypeImports: true, scalars: { DateTime: 'string' } },
    },
    // For urql's store only.
    'shared/gql/introspection.json': { plugins: ['introspection'], config: { minify: true } },
  },
};

export default config;
