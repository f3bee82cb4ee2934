// Executes in turns: work on a large result is done in slices, between which other senders have their turn.
import type { ExecutionArgs } from 'graphql';
import { currentTask } from '../../database/task.ts';
import { takeTurn } from '../../database/turns.ts';
import type { Operations } from '../engine/operations.ts';
import type { OperationPlugin } from '../operation.ts';

/** Fields that parsing and validating a document takes about as long as. */
const parsing = 200;
/** Fields that beginning an execution takes about as long as. */
const beginning = 100;

export function useTurns(operations: Operations): OperationPlugin {
  return {
    async onParams({ params: { query }, context: { run } }) {
      if (query === undefined || operations.get(query)) return;
      await takeTurn(parsing, { sender: run.caller.sender });
    },
    onExecute({ executeFn, setExecuteFn, context: { run } }) {
      setExecuteFn(async (args: ExecutionArgs) => {
        const { objects = 1, fields = 0 } = run.cost ?? {};
        const task = currentTask();
        if (task && fields > 0) task.fieldsPerObject = fields / objects;
        await takeTurn(beginning);
        return executeFn(args);
      });
    },
  };
}
