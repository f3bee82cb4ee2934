// PostGraphile on the tables of the gateway, as it comes. Its packages are in the folder that POSTGRAPHILE names.
import { createServer } from 'node:http';
import { createRequire } from 'node:module';

const load = createRequire(`${process.env['POSTGRAPHILE']}/`);
const { postgraphile } = load('postgraphile');
const { grafserv } = load('postgraphile/grafserv/node');
const { PostGraphileAmberPreset } = load('postgraphile/presets/amber');
const { makePgService } = load('postgraphile/adaptors/pg');

const server = createServer();
const service = makePgService({ connectionString: process.env['DATABASE_URL'] });
const instance = postgraphile({
  extends: [PostGraphileAmberPreset],
  pgServices: [service],
  // The functions of the gateway have types that it cannot name.
  disablePlugins: ['PgProceduresPlugin', 'PgCustomTypeFieldPlugin'],
});
await instance.getSchema();
await instance.createServ(grafserv).addTo(server);
server.listen(Number(process.env['PORT']), '127.0.0.1');
