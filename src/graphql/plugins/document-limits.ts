// Parses and validates documents within the limits. Those of this service itself have been validated at start.
import type { DocumentNode, GraphQLSchema, ValidationRule } from 'graphql';
import { type LimitConfig, parseWithin, validateWithin } from '../engine/limits.ts';
import type { OperationPlugin } from '../operation.ts';

export function useDocumentLimits(schema: GraphQLSchema, config: LimitConfig): OperationPlugin {
  return {
    onParse({ setParseFn }) {
      setParseFn(parseWithin);
    },
    onValidate({ setValidationFn }) {
      // With the rules that other plugins add.
      setValidationFn((_schema: GraphQLSchema, document: DocumentNode, rules?: ValidationRule[]) =>
        validateWithin(schema, config, document, rules),
      );
    },
  };
}
