// The engine and plain graphql give the same answers, to the byte: data, order of fields, errors.
import { type ExecutionResult, execute, GraphQLError, parse } from 'graphql';
import { expect } from 'vitest';
import { ContextFactory } from '../../../src/graphql/context.ts';
import { schema } from '../../../src/graphql/schema.ts';
import type { TestGateway } from '../gateway.ts';
import { createRandom, generateDocument, type Values } from './random-documents.ts';

/** How often each document is sent: a query is compiled for the fourth time. */
const rounds = 5;

export interface Compared {
  readonly documents: number;
  readonly answers: number;
  /** Answers with data and no errors. */
  readonly whole: number;
}

/**
 * Sends random documents to a gateway that keeps no answers, and compares each answer with what
 * graphql gives on the same data.
 */
export async function compareWithGraphql(
  { app, config, database }: TestGateway,
  values: Values,
  { documents, seed }: { readonly documents: number; readonly seed: number },
): Promise<Compared> {
  const contexts = new ContextFactory(config, database);
  const random = createRandom(seed);
  let answers = 0;
  let whole = 0;
  for (let index = 0; index < documents; index++) {
    const { text, variables } = generateDocument(schema, random, values);
    const document = parse(text);
    for (let round = 0; round < rounds; round++) {
      const variableValues = variables[round] ?? {};
      const response = await app.inject({
        method: 'POST',
        url: '/graphql',
        payload: { query: text, variables: variableValues },
      });
      // What is over a limit is not executed.
      if (/"code":"(?:TOO_MANY_|QUERY_TOO_)/.test(response.body)) continue;
      const contextValue = contexts.createPersonal({
        viewer: undefined,
        idempotencyKey: undefined,
      });
      const expected = await execute({ schema, document, variableValues, contextValue });
      const shown = `seed ${seed}, document ${index}, round ${round}: ${text} ${JSON.stringify(variableValues)}`;
      expect(printAnswer(response.json(), response.body), shown).toEqual(printResult(expected));
      answers++;
      if (expected.data && !expected.errors) whole++;
    }
  }
  return { documents, answers, whole };
}

interface Printed {
  readonly data: string;
  readonly errors: readonly string[];
}

/** The data as text, since the order of its fields counts. */
function printResult({ data, errors = [] }: ExecutionResult): Printed {
  // Of many errors of variables, the gateway returns five.
  const isRefused = data === undefined;
  const shown = isRefused ? errors.slice(0, 5) : errors;
  return { data: JSON.stringify(data ?? null), errors: shown.map((error) => printError(error)) };
}

function printAnswer(
  { data, errors = [] }: { data?: unknown; errors?: object[] },
  body: string,
): Printed {
  const text = JSON.stringify(data ?? null);
  // JSON.parse keeps the order of keys: none here is a number.
  expect(body).toContain(data ? text : '');
  const shown = errors.filter((error) => !isTooMany(error)).slice(0, 5);
  return { data: text, errors: (data ? errors : shown).map((error) => printError(error)) };
}

/** What graphql says after the most errors that it is to tell. */
function isTooMany(error: object): boolean {
  return 'message' in error && String(error.message).startsWith('Too many errors');
}

function printError(error: GraphQLError | object): string {
  const { message, path, locations } = (error instanceof GraphQLError ? error.toJSON() : error) as {
    message: string;
    path?: unknown;
    locations?: unknown;
  };
  return JSON.stringify({ message, path, locations });
}
