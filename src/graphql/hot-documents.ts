import {
  type DocumentNode,
  type ExecutionResult,
  type GraphQLSchema,
  getOperationAST,
} from 'graphql';
import { type CompiledQuery, compileQuery, isCompiledQuery } from 'graphql-jit';
import type { Plugin } from 'graphql-yoga';

/** What became of the operation of a request, for whoever sends the answer. */
export interface Outcome {
  /** Whether it was a query that gave no error: then the same request gives the same answer. */
  repeatable: boolean;
}

/** Executions of a document before it is compiled, which takes as long as some hundred of them. */
const executionsBeforeCompiling = 3;

/**
 * Executes documents that come again and again with code compiled for them, and notes the outcome.
 * Documents are told apart by identity: yoga parses equal texts once and bounds how many it keeps.
 */
export function useHotDocuments(schema: GraphQLSchema): Plugin<{ outcome: Outcome }> {
  const documents = new WeakMap<DocumentNode, Map<string, Operation>>();

  return {
    onExecute({ args, setExecuteFn }) {
      const { document, operationName, contextValue } = args;
      const operation = findOperation(documents, document, operationName);
      const isQuery = getOperationAST(document, operationName)?.operation === 'query';
      operation.executions++;
      if (operation.executions === executionsBeforeCompiling) {
        operation.compiled = compile(schema, document, operationName);
      }
      const { compiled } = operation;
      if (compiled) {
        setExecuteFn(({ rootValue, contextValue: context, variableValues }) =>
          compiled.query(rootValue, context, variableValues),
        );
      }
      return {
        onExecuteDone({ result }) {
          contextValue.outcome.repeatable = isQuery && !(result as ExecutionResult).errors;
        },
      };
    },
  };
}

/** One operation of a document: two of the same document must not be taken for each other. */
interface Operation {
  executions: number;
  compiled?: CompiledQuery | undefined;
}

function findOperation(
  documents: WeakMap<DocumentNode, Map<string, Operation>>,
  document: DocumentNode,
  name: string | null | undefined,
): Operation {
  const operations = documents.get(document) ?? new Map<string, Operation>();
  documents.set(document, operations);
  const operation = operations.get(name ?? '') ?? { executions: 0 };
  operations.set(name ?? '', operation);
  return operation;
}

/** Undefined for what graphql-jit cannot compile, which is then interpreted as before. */
function compile(
  schema: GraphQLSchema,
  document: DocumentNode,
  operationName: string | null | undefined,
): CompiledQuery | undefined {
  const compiled = compileQuery(schema, document, operationName ?? undefined);
  return isCompiledQuery(compiled) ? compiled : undefined;
}
