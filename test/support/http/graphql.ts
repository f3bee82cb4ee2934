// Requests to /graphql, for tests that look at the whole response.
import type { FastifyInstance, LightMyRequestResponse } from 'fastify';

/** @param payload parameters of GraphQL over HTTP, or any body as text */
export const postGraphql = (
  app: FastifyInstance,
  payload: object | string,
  headers: Record<string, string> = {},
): Promise<LightMyRequestResponse> => {
  const type = { 'content-type': 'application/json' };
  return app.inject({ method: 'POST', url: '/graphql', headers: { ...type, ...headers }, payload });
};

export const getGraphql = (
  app: FastifyInstance,
  parameters: Record<string, string>,
  headers: Record<string, string> = {},
): Promise<LightMyRequestResponse> =>
  app.inject({ url: `/graphql?${new URLSearchParams(parameters)}`, headers });
