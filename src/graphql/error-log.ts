import type { FastifyBaseLogger } from 'fastify';
import type { Plugin } from 'graphql-yoga';

/**
 * Logs what yoga masks. Yoga has one logger for all requests: the plugin notes whose execution an
 * error is of, so that the line has the id of that request.
 * @param others where errors outside of executions go
 */
export function createErrorLog(others: FastifyBaseLogger) {
  const logs = new WeakMap<object, FastifyBaseLogger>();
  const plugin: Plugin<{ log: FastifyBaseLogger }> = {
    onExecute({ args: { contextValue } }) {
      return {
        onExecuteDone({ result }) {
          if (!('errors' in result)) return;
          for (const error of result.errors ?? []) logs.set(error, contextValue.log);
        },
      };
    },
  };
  return {
    plugin,
    log(error: unknown) {
      const log = (typeof error === 'object' && error && logs.get(error)) || others;
      log.error({ err: error }, 'unexpected error');
    },
  };
}
