// Masks unexpected errors, and logs them whole. A failure of the whole request, such as a database that is down, is thrown.
import type { FastifyBaseLogger } from 'fastify';
import { type ExecutionArgs, type ExecutionResult, GraphQLError } from 'graphql';
import { type GraphQLHTTPExtensions, maskError as maskUnexpected } from 'graphql-yoga';
import { httpErrorFor } from '../../database/errors.ts';
import { FieldError, HttpError } from '../../errors.ts';
import { invalidArgument } from '../errors.ts';
import type { OperationPlugin } from '../run.ts';

export function useMaskedResults(): OperationPlugin {
  return {
    onExecute({ context: { run }, executeFn, setExecuteFn }) {
      setExecuteFn(async (args: ExecutionArgs) => {
        const result: ExecutionResult = await executeFn(args);
        return publish(result, run.operation?.type === 'mutation', run.caller.log);
      });
    },
  };
}

/** @throws HttpError of the whole request, unless a mutation has written something */
function publish(
  result: ExecutionResult,
  isMutation: boolean,
  log: FastifyBaseLogger,
): ExecutionResult {
  const { data, errors } = result;
  if (!errors) return result;
  const httpError = errors.map(httpErrorFor).find((error) => error !== undefined);
  if (httpError && !(isMutation && hasWritten(data))) throw httpError;
  if (httpError?.cause) log.error({ err: httpError.cause }, httpError.message);
  return { ...result, errors: errors.map((error) => maskError(error, log)) };
}

function hasWritten(data: ExecutionResult['data']): boolean {
  return Object.values(data ?? {}).some((value) => value !== null);
}

export function maskError(error: unknown, log?: FastifyBaseLogger): GraphQLError {
  const httpError = httpErrorFor(error);
  if (httpError) return publishHttpError(httpError, error);
  if (error instanceof GraphQLError) {
    const { extensions, message, nodes = null, originalError = error, path = null } = error;
    if (originalError instanceof FieldError) {
      const { cause: err, code } = originalError;
      if (err) log?.warn({ err }, message);
      return new GraphQLError(message, { nodes, path, extensions: { code } });
    }
    const isOfGraphql = originalError instanceof GraphQLError && extensions['code'] === undefined;
    if (isOfGraphql && message.startsWith('Argument "')) return invalidArgument(error);
  }
  // Explicitly not for developers: NODE_ENV=development would publish stack traces.
  const masked = maskUnexpected(error, 'Internal server error.', false) as GraphQLError;
  if (masked !== error) log?.error({ err: error }, 'unexpected error');
  return masked;
}

/** With the error itself when it is that of the whole request: `failureOf` finds it. */
function publishHttpError(httpError: HttpError, error: unknown): GraphQLError {
  const { code, message, status } = httpError;
  if (error instanceof GraphQLError) {
    const { nodes = null, path = null } = error;
    return new GraphQLError(message, { nodes, path, extensions: { code } });
  }
  const http = { spec: false, status };
  return new GraphQLError(message, { originalError: httpError, extensions: { code, http } });
}

/** The error of the whole request, which Yoga has caught. */
export function failureOf({ data, errors }: ExecutionResult): HttpError | undefined {
  const error = data === undefined ? errors?.[0] : undefined;
  if (error?.originalError instanceof HttpError) return error.originalError;
  // Of Yoga, about the request.
  if (error?.extensions['code'] !== 'BAD_REQUEST') return undefined;
  const { status = 400, headers } = error.extensions.http as GraphQLHTTPExtensions;
  const code = status === 405 ? 'METHOD_NOT_ALLOWED' : 'BAD_REQUEST';
  return new HttpError(status, code, error.message, headers);
}
