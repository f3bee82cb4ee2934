import { type ExecutionResult, GraphQLError, getOperationAST } from 'graphql';
import { isAsyncIterable, type Plugin } from 'graphql-yoga';
import { httpErrorFor } from '../database/errors.ts';
import type { HttpError } from '../errors.ts';
import type { Query } from './limits.ts';

/** What became of a request, for whoever sends the answer. */
export interface Outcome {
  /**
   * Set when the request was a query, valid and answered without an error: then the same request
   * gives the same answer.
   */
  query?: Query;
  /** Name of the operation that was executed. */
  operationName?: string | undefined;
  /** Set when the request as a whole is turned away, because the database is away, say. */
  refusal?: HttpError | undefined;
}

/** Notes the outcome of an execution in the context. */
export function useOutcome(): Plugin<{ outcome: Outcome }> {
  return {
    onExecute({ args: { document, operationName, contextValue } }) {
      const operation = getOperationAST(document, operationName);
      const isQuery = operation?.operation === 'query';
      contextValue.outcome.operationName = operation?.name?.value;
      return {
        onExecuteDone({ result, setResult }) {
          // No operation is answered in parts.
          if (isAsyncIterable(result)) return;
          const { data, errors } = result;
          if (isQuery && data && !errors) {
            contextValue.outcome.query = { document, operationName: operation.name?.value };
          }
          const refusal = refusalIn(errors);
          if (refusal && !isQuery && hasWritten(data)) {
            // The client must learn what has been done: what was refused is said beside it.
            setResult({ ...result, errors: errors?.map(publishRefusal) ?? [] });
          } else if (refusal) {
            contextValue.outcome.refusal = refusal;
            // Yoga would log what it masks, once per request.
            setResult({ data: null });
          }
        },
      };
    },
  };
}

function hasWritten(data: ExecutionResult['data']): boolean {
  return Object.values(data ?? {}).some((value) => value !== null);
}

function publishRefusal(error: GraphQLError): GraphQLError {
  const refusal = httpErrorFor(error);
  if (!refusal) return error;
  const { code, message } = refusal;
  return new GraphQLError(message, {
    nodes: error.nodes ?? null,
    path: error.path ?? null,
    extensions: { code },
  });
}

/** The first of these errors that turns a request away; undefined: none does. */
export function refusalIn(errors: readonly unknown[] = []): HttpError | undefined {
  return errors.map(httpErrorFor).find((refusal) => refusal !== undefined);
}
