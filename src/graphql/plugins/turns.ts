// Executes in turns: work on a large result is done in slices, between which other senders have their turn.
import type { ExecutionArgs, ExecutionResult } from 'graphql';
import { currentTask } from '../../database/task.ts';
import { takeTurn } from '../../database/turns.ts';
import { answerTooLarge } from '../errors.ts';
import type { Operations } from '../operations.ts';
import type { OperationPlugin } from '../run.ts';

/** Fields that parsing and validating a document takes about as long as. */
const parsing = 200;
/** Fields that beginning an execution takes about as long as. */
const beginning = 100;
/** More fields than a page of outfits with all that each has: such an answer is large, and encoded in pieces. */
const largeSize = 1_000;
/** Values in one piece. */
const pieceSize = 500;
/** Values that are encoded while one field is executed. */
const valuesPerField = 5;
/** Characters of an answer: ten times those of the largest usual one. Aliases could repeat each text fifty times. */
const maxAnswer = 33_554_432;

export function useTurns(operations: Operations): OperationPlugin {
  return {
    // Without a promise where the document is known: behind one, Yoga makes several more.
    onParams({ params: { query }, context: { run } }) {
      const isKnown = query === undefined || operations.get(query);
      return isKnown ? undefined : takeTurn(parsing, { sender: run.caller.sender });
    },
    onExecute({ executeFn, setExecuteFn, context: { run } }) {
      setExecuteFn(async (args: ExecutionArgs) => {
        const { objects = 1, fields = 0 } = run.cost ?? {};
        const task = currentTask();
        if (task && fields > 0) {
          task.fieldsPerObject = fields / objects;
          task.isLarge = fields > largeSize;
        }
        const turn = takeTurn(beginning);
        if (turn) await turn;
        const result: ExecutionResult = await executeFn(args);
        const isLarge = fields > largeSize && !isSmall(result.data);
        return isLarge ? encode(result) : result;
      });
    },
  };
}

/** Gives the result its text, which `processRegularResult` of Yoga takes. A changed copy does not get it. */
async function encode(result: ExecutionResult): Promise<ExecutionResult> {
  const pieces: string[] = [];
  let length = 0;
  for (const piece of piecesOf(result.data)) {
    pieces.push(piece);
    length += piece.length;
    if (length > maxAnswer) throw answerTooLarge(maxAnswer);
    if (piece.length > 1) await takeTurn(pieceSize / valuesPerField);
  }
  const text = `"data":${pieces.join('')}}`;
  // Called with the errors that clients get, which are few.
  const value = ({ errors }: ExecutionResult) =>
    errors ? `{"errors":${JSON.stringify(errors)},${text}` : `{${text}`;
  return Object.defineProperty(result, 'stringify', { value });
}

function* piecesOf(value: unknown): Generator<string> {
  if (isSmall(value)) yield JSON.stringify(value);
  else if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      yield index === 0 ? '[' : ',';
      yield* piecesOf(item);
    }
    yield ']';
  } else {
    let separator = '{';
    for (const [name, inner] of Object.entries(value as object)) {
      yield `${separator}${JSON.stringify(name)}:`;
      yield* piecesOf(inner);
      separator = ',';
    }
    yield '}';
  }
}

function isSmall(value: unknown): boolean {
  return countDown(value, pieceSize) >= 0;
}

/** What is left when each value has been counted; below 0 as soon as nothing is. */
function countDown(value: unknown, most: number): number {
  let left = most - 1;
  if (typeof value !== 'object' || value === null) return left;
  for (const inner of Object.values(value)) {
    if (left < 0) break;
    left = countDown(inner, left);
  }
  return left;
}
