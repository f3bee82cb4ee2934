// Prisma's own schema engine (the one behind `prisma migrate`), as WebAssembly, so that tests can
// ask it about drift and history without downloading its binary.
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { PrismaPg } from '@prisma/adapter-pg';
import {
  bindMigrationAwareSqlAdapterFactory,
  ColumnTypeEnum,
  type SqlQuery,
} from '@prisma/driver-adapter-utils';
import type { MigrationList, SchemaEngine } from '@prisma/schema-engine-wasm';
import pg from 'pg';

const projectRoot = new URL('../../..', import.meta.url).pathname;
const schemaPath = join(projectRoot, 'prisma/schema.prisma');

export const schemaDatamodel = () => ({
  tag: 'schemaDatamodel' as const,
  files: [{ path: schemaPath, content: readFileSync(schemaPath, 'utf8') }],
});

export const noFilters = { externalTables: [], externalEnums: [] };

/** The migrations folder in the form the engine takes. */
export function migrationList(): MigrationList {
  const baseDir = join(projectRoot, 'prisma/migrations');
  const names = readdirSync(baseDir, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name)
    .sort();
  return {
    baseDir,
    lockfile: {
      path: 'migration_lock.toml',
      content: readFileSync(join(baseDir, 'migration_lock.toml'), 'utf8'),
    },
    shadowDbInitScript: '',
    migrationDirectories: names.map((name) => ({
      path: name,
      migrationFile: {
        path: 'migration.sql',
        content: { tag: 'ok', value: readFileSync(join(baseDir, name, 'migration.sql'), 'utf8') },
      },
    })),
  };
}

/** Opens the engine on the database behind `pool`. */
export async function openSchemaEngine(pool: pg.Pool): Promise<SchemaEngine> {
  bindings ??= loadBindings();
  const factory = bindMigrationAwareSqlAdapterFactory(new WholeScripts(pool));
  return (await bindings).SchemaEngine.new({ datamodels: undefined }, () => {}, factory);
}

// Once for a process: a second instance would take the memory of the first one's engines away.
let bindings: ReturnType<typeof loadBindings> | undefined;

async function loadBindings() {
  const require = createRequire(import.meta.url);
  const wasmPath = require
    .resolve('@prisma/schema-engine-wasm')
    .replace(/schema_engine\.js$/, 'schema_engine_bg.wasm');
  const loaded = await import('@prisma/schema-engine-wasm/schema_engine_bg');
  const { instance } = await WebAssembly.instantiate(readFileSync(wasmPath), {
    './schema_engine_bg.js': loaded,
  });
  loaded.__wbg_set_wasm(instance.exports);
  const start = instance.exports['__wbindgen_start'];
  if (typeof start === 'function') start();
  return loaded;
}

/**
 * adapter-pg splits scripts at every `;`, which breaks function bodies: send them whole. And it does
 * not know the one-letter type "char" of PostgreSQL's catalogs: pass it through as a text, and tell
 * the engine what it was.
 */
class WholeScripts extends PrismaPg {
  override async connect() {
    const adapter = await super.connect();
    adapter.executeScript = async (script) => {
      await adapter.underlyingDriver().query(script);
    };

    let letters: number[] = [];
    const send: (query: SqlQuery) => Promise<pg.QueryResult> = adapter['performIO'].bind(adapter);
    adapter['performIO'] = async (query: SqlQuery) => {
      const result = await send(query);
      letters = result.fields.flatMap((field, index) =>
        field.dataTypeID === pg.types.builtins.CHAR ? [index] : [],
      );
      for (const index of letters) {
        Object.assign(result.fields[index] ?? {}, { dataTypeID: pg.types.builtins.TEXT });
      }
      return result;
    };
    const queryRaw = adapter.queryRaw.bind(adapter);
    adapter.queryRaw = async (query) => {
      const result = await queryRaw(query);
      for (const index of letters) result.columnTypes[index] = ColumnTypeEnum.Character;
      return result;
    };
    return adapter;
  }
}
