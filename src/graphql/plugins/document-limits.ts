// Parses and validates documents within the limits. Those of this service itself have been validated at start.
import type { DocumentNode, GraphQLSchema } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import { type LimitConfig, parseWithin, validateWithin } from '../engine/limits.ts';
import type { OperationContext } from '../operation.ts';

export function useDocumentLimits(
  schema: GraphQLSchema,
  config: LimitConfig,
): Plugin<OperationContext> {
  return {
    onParse({ setParseFn }) {
      setParseFn(parseWithin);
    },
    onValidate({ setValidationFn }) {
      setValidationFn((_schema: GraphQLSchema, document: DocumentNode) =>
        validateWithin(schema, config, document),
      );
    },
  };
}
