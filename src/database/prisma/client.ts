// Prisma's client on our connections: reads go where their task reads, and invalidate its answer by what they read.
import { PrismaPg } from '@prisma/adapter-pg';
import type { SqlDriverAdapterFactory } from '@prisma/driver-adapter-utils';
import pg from 'pg';
import { PrismaClient } from '../../generated/prisma/client.ts';
import { nameStatement } from '../read.ts';
import { currentTask, keepTaskScope, runOutsideTask, type TaskScope } from '../task.ts';
import { inTurn } from '../turns.ts';
import { dependenciesOf } from './dependencies.ts';

export type Client = ReturnType<typeof createPrisma>;

/** Connects, and asks for the schema, with its first query. */
export function createPrisma(pool: pg.Pool) {
  // The pool replaces a broken idle connection; without a listener, its error would end the process.
  pool.on('error', () => {});
  let schema = '';
  let finding: Promise<void> | undefined;
  /** Asked for once, so that queries of one tick stay together. */
  const find = () => {
    finding ??= runOutsideTask(() => findSchema(pool))
      .then((found) => {
        schema = found;
      })
      .finally(() => {
        finding = undefined;
      });
    return finding;
  };
  const adapter: SqlDriverAdapterFactory = {
    provider: 'postgres',
    adapterName: '@prisma/adapter-pg',
    connect: async () => {
      const statementNameGenerator = ({ sql }: { readonly sql: string }) => nameStatement(sql);
      return new PrismaPg(new RoutingPool(pool), { schema, statementNameGenerator }).connect();
    },
  };
  const ownTick = createTicks();
  // Other formats look for the caller in the stack, at a third of the time of a query.
  return new PrismaClient({ adapter, errorFormat: 'minimal' }).$extends({
    query: {
      $allOperations({ model, operation, args, query }) {
        const reading = keepTaskScope(async () => {
          // Not when it connects: of an error there, Prisma keeps too little to tell what it is.
          if (!schema) await find();
          if (operation.startsWith('findUnique')) await ownTick();
          // Awaited here: Prisma's promises begin when they are awaited, in the scope where that happens.
          const result: unknown = await query(args);
          return inTurn(result, Array.isArray(result) ? result.length + 1 : 1);
        });
        const dependencies = (result: unknown) => dependenciesOf(model, operation, args, result);
        return currentTask()?.reads?.tracker?.track(reading, dependencies) ?? reading;
      },
    },
  });
}

/** Sends the reads of a task to its source, and all else to the primary. Opens no connection itself. */
class RoutingPool extends pg.Pool {
  constructor(primary: pg.Pool) {
    super();
    const send = (statement: pg.QueryConfig) => {
      const source = /^SELECT/.test(statement.text) ? currentTask()?.reads?.source : undefined;
      return source ? source.query(statement) : primary.query(statement);
    };
    this.query = send as typeof this.query;
    this.connect = primary.connect.bind(primary) as typeof this.connect;
  }
}

/**
 * Prisma sends all `findUnique` of one tick in the scope of the first, and alike ones as one statement. So a tick has those
 * of one task only: statements of another would be read from its source, and cancelled with it.
 */
function createTicks() {
  let task: TaskScope | undefined;
  /** Calls of the task that Prisma may not have sent yet. */
  let pending = 0;
  const waiting = new Map<TaskScope | undefined, (() => void)[]>();
  const end = () => {
    pending -= 1;
    const [next] = waiting;
    if (pending > 0 || !next) return;
    const [nextTask, calls] = next;
    waiting.delete(nextTask);
    task = nextTask;
    pending = calls.length;
    for (const resume of calls) resume();
  };
  return async () => {
    const caller = currentTask();
    if (pending > 0 && task !== caller) {
      const calls = waiting.get(caller) ?? [];
      waiting.set(caller, calls);
      await new Promise<void>((resume) => calls.push(resume));
    } else {
      task = caller;
      pending += 1;
    }
    // Prisma sends between these two ticks.
    process.nextTick(() => process.nextTick(end));
  };
}

/** Prisma names a schema in each statement: `public`, if it is told none. Rejects, so that it asks again, without tables. */
async function findSchema(pool: pg.Pool): Promise<string> {
  const { rows } = await pool.query<{ schema: string }>(
    `SELECT nspname AS schema FROM pg_namespace n JOIN pg_class c ON c.relnamespace = n.oid WHERE c.oid = 'users'::regclass`,
  );
  // Prisma quotes the name, but not the quotes in it.
  return (rows as [{ schema: string }])[0].schema.replaceAll('"', '""');
}
