// The command line as a person types it: commands, options, .env, help, and what a start says.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { decodeJwt } from 'jose';
import { afterAll, describe, expect, test } from 'vitest';
import { runCommand } from '../../src/commands/command.ts';
import {
  createLine,
  flagOf,
  parseLine,
  settingsOf,
  withSettings,
} from '../../src/commands/options/command-line.ts';
import { allSettings } from '../../src/config/config.ts';
import { OperatorError } from '../../src/errors.ts';
import { callCommand } from '../support/cli/commands.ts';
import { makeFolder } from '../support/cli/folder.ts';
import {
  baseOf,
  dist,
  listing,
  migratedEnvironmentOf,
  run,
  runServer,
  stop,
} from '../support/cli/process.ts';
import { secret } from '../support/http/tokens.ts';

const readFile = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
const { version } = JSON.parse(readFile('package.json'));
const example = [...readFile('.env.example').matchAll(/^([A-Z_]+)=(.*)$/gm)].map(
  ([, name = '', value = '']) => [name, value] as const,
);

const place = makeFolder(afterAll);

/** A folder with that text as its `.env`. */
function folderWith(text: string): string {
  const folder = mkdtempSync(join(place, 'folder-'));
  writeFileSync(join(folder, '.env'), text);
  return folder;
}

const start = (args: readonly string[], folder?: string, environment = {}) =>
  run([`${dist}commands/cli.js`, ...args], environment, folder);

async function call(...given: Parameters<typeof start>) {
  const running = start(...given);
  const code = await running.ended;
  return { code, output: running.output(), errors: running.errors() };
}

describe('a setting', () => {
  function read(line: ReturnType<typeof createLine>, ...args: string[]) {
    expect(parseLine(withSettings(line), args, process)).toBeUndefined();
    return settingsOf(line);
  }

  test('a setting is an option of every command that reads settings', () => {
    const args = example.map(([name, value]) => {
      return `--${name.toLowerCase().replaceAll('_', '-')}=${value}`;
    });
    expect(read(createLine('any'), ...args)).toEqual(Object.fromEntries(example));
  });

  test('a setting is not what an option of that name of the command itself says', () => {
    const line = createLine('any').option('--media-url <URL>');
    const settings = read(line, '--media-url', 'https://a.test', '--video-url', 'https://b.test');
    expect(line.opts()).toMatchObject({ mediaUrl: 'https://a.test' });
    expect(settings).toEqual({ VIDEO_URL: 'https://b.test' });
  });

  test('a setting is taken from the option, else from the environment, else from .env', async () => {
    const folder = folderWith(`# A comment, and what is no setting.
POSTGRES_PASSWORD=any
TEXT="over
two lines"
AUTH_ISUER=of a typo
port=1
export AUTH_JWT_SECRET='${secret}' # in quotes
AUTH_ISSUER=of the file
AUTH_AUDIENCE=of the file
`);
    const environment = { AUTH_AUDIENCE: 'of the environment' };
    const issued = async (...args: string[]) => {
      const given = ['token', '--user', '7', ...args];
      const { code, output, errors } = await call(given, folder, environment);
      expect(code).toBe(0);
      expect(errors.trim().split('\n').toSorted()).toEqual([
        '.env sets AUTH_ISUER, which is not a setting.',
        '.env sets TEXT, which is not a setting.',
        '.env sets port, which is not a setting.',
      ]);
      return decodeJwt(output.trim());
    };
    expect(await issued()).toMatchObject({ iss: 'of the file', aud: 'of the environment' });
    const changed = await issued('--auth-audience', 'of the option', '--auth-issuer=');
    expect(changed).toMatchObject({ aud: 'of the option' });
    expect(changed).not.toHaveProperty('iss');
  });
});

describe('.env', () => {
  test.each<[args: string[], text: string, sentence: string]>([
    [['start'], 'PORT=8080\nPORT 8080\n', 'Line 2 of .env is not NAME=value: '],
    [['counts', 'check'], 'A="a\nb"\n\r\n"PORT=1\n', 'Line 4 of .env is not NAME=value: '],
    [['migrate'], 'A="x\nPORT=1\nB="y"\n', 'Line 1 of .env is not NAME=value: '],
    [['migrate'], '\uFEFFPORT=http', 'PORT is "http", but '],
    [['migrate'], 'P\0O\0R\0T\0=\x001\0', 'The file .env is not UTF-8: save it as UTF-8.'],
  ])('ends %j with 2 and one sentence for %j', async (args, text, sentence) => {
    const ended = await call(args, folderWith(text));
    expect(ended).toMatchObject({ code: 2, output: '' });
    expect(ended.errors.startsWith(sentence), ended.errors).toBe(true);
    expect(ended.errors).toMatch(/^[^\n]+\.\n$/);
  });

  test('.env ends the start with one sentence when it cannot be read, and help is given all the same', async () => {
    const folder = mkdtempSync(join(place, 'folder-'));
    mkdirSync(join(folder, '.env'));
    expect(await call([], folder)).toEqual({
      code: 2,
      output: '',
      errors: expect.stringMatching(/^The file \.env cannot be read \(EISDIR[^\n]+\.\n$/),
    });
    expect(await call(['start', '--help'], folder)).toMatchObject({ code: 0, errors: '' });
  });
});

test.each([
  [{ PORT: 'abc' }, 2, /^PORT is "abc", but /],
  [{ DATA_DIR: '/proc/no' }, 1, /^DATA_DIR is "\/proc\/no", but that folder cannot be made/],
  [{ DATABASE_URL: 'postgresql://u:1/2@h/d' }, 2, /^DATABASE_URL is cut short by a character/],
])(
  'LOG_FORMAT=json ends a start that fails by %j with a line of JSON',
  async (wrong, code, sentence) => {
    const ended = run([`${dist}commands/cli.js`], { PORT: '0', LOG_FORMAT: 'json', ...wrong });
    expect(await ended.ended).toBe(code);
    const { level, time, msg } = JSON.parse(ended.errors());
    expect(level).toBe('fatal');
    expect(Date.parse(time)).toBeGreaterThan(0);
    expect(msg).toMatch(sentence);
  },
);

describe('a wrong command line ends with 2 and one sentence', () => {
  test.each([
    [['nope'], "Unknown command 'nope': see --help."],
    [['imprt', 'x'], "Unknown command 'imprt' (did you mean import?): see --help."],
    [['--prot=x'], "Unknown option '--prot' (did you mean --port?): see --help."],
    [['replay', '-', '--port', '1'], /^Required option '--legacy <URL>' not specified/],
    [['counts', 'chek'], /^Command-argument value 'chek' is invalid.*choices are check, rebuild/],
    [['start', 'now'], 'Too many arguments, expected 0 arguments but got 1: see --help.'],
    [['--port'], "Option '--port <value>' argument missing: see --help."],
    [['migrate', '--database-url=s3cret'], /^--database-url is not valid, but it must be a URL/],
  ])('%j', async (args, sentence) => {
    const { code, output, errors } = await call(args);
    expect({ code, output }).toEqual({ code: 2, output: '' });
    expect(errors).toMatch(/^[^\n]+\.\n$/);
    expect(errors.trim()).toMatch(sentence);
  });
});

/** Each with a command line that is right, and its exit code when what it needs is away. */
const lines: Readonly<Record<string, readonly [args: readonly string[], code: number]>> = {
  start: [['--host', '192.0.2.1'], 1],
  migrate: [[], 1],
  check: [[], 1],
  import: [['http://localhost:1/api/outfits/'], 2],
  verify: [['http://localhost:1/api/outfits/'], 2],
  replay: [
    ['/nonexistent', '--legacy', 'http://localhost:1', '--against', 'http://localhost:1'],
    2,
  ],
  export: [['-'], 1],
  token: [['--user', '1'], 2],
  forget: [['--user', '1'], 2],
  attach: [['check'], 2],
  detach: [[], 1],
  counts: [['check'], 2],
};
const commands = Object.keys(lines);

describe('the exit code of', () => {
  test.each(Object.entries(lines))(
    '%s is 2 for a wrong command line or setting, also with others',
    async (name, [args, code]) => {
      const command = await import(`../../src/commands/${name}.ts`);
      const environment = {
        DATABASE_URL: 'postgresql://localhost:1/nothing',
        LEGACY_URL: 'http://localhost:1',
        LOG_LEVEL: 'silent',
      };
      for (const [more, settings, sentence] of [
        [['--nope'], {}, /^Unknown option '--nope'/],
        [['--page-size', '0'], {}, /^--page-size is "0", but it must be /],
        [[], { PORT: 'abc', PAGE_SIZE: '0' }, /^PORT is "abc", .*\nPAGE_SIZE is "0", .*\n$/],
        [[], { AUTH_COOKIES: 'a' }, /^AUTH_COOKIES is set, but AUTH_WEBHOOK_URL is not/],
      ] as const) {
        const given = { ...environment, ...settings };
        const ended = await callCommand(command, [...args, ...more], given);
        expect(ended.stderr).toMatch(sentence);
        expect(ended.code).toBe(2);
      }
      expect(await callCommand(command, args, environment)).toMatchObject({ code });
    },
  );
});

test.each([
  ['--help', 0, ''],
  ['token --user 1', 1, 'Standard output cannot be written (ENOSPC: '],
  ['check --json', 1, 'Standard output cannot be written (ENOSPC: '],
])('%s on a full disk ends with %i and a sentence', (args, code, sentence) => {
  const command = `"$0" "$1" ${args} > /dev/full`;
  const environment = { AUTH_JWT_SECRET: secret, DATA_DIR: join(place, 'none') };
  const ended = spawnSync('sh', ['-c', command, process.execPath, `${dist}commands/cli.js`], {
    ...{ cwd: place, env: { ...process.env, ...environment }, encoding: 'utf8' },
  });
  expect(ended.status).toBe(code);
  expect(ended.stderr.slice(0, sentence.length || undefined)).toBe(sentence);
});

test('a failure of another kind is told where standard output is lost, too', async () => {
  const stdout = new Writable({ write: (_chunk, _encoding, done) => done(new Error('full')) });
  const said: string[] = [];
  const command = {
    line: () => createLine('nothing'),
    run: async ({ stdout: output }: { stdout: { write(text: string): unknown } }) => {
      output.write('begun\n');
      await new Promise((settle) => stdout.once('close', settle));
      throw new OperatorError('it went wrong');
    },
  };
  const code = await runCommand(command, {
    ...{ args: [], env: {}, stdin: Readable.from([]), stdout, signal: AbortSignal.any([]) },
    stderr: { write: (text) => said.push(text) },
  });
  expect([code, said]).toEqual([1, ['it went wrong\n']]);
});

test('ranges in NO_PROXY are said not to count, once, before a command runs', async () => {
  const { line, run: runNothing } = { line: () => createLine('nothing'), run: async () => 0 };
  const said = async (env: Record<string, string>) =>
    (await callCommand({ line, run: runNothing }, [], env)).stderr;
  const range = /^NO_PROXY has ranges, which do not count \(10\.0\.0\.0\/8, fd00::\/8\): .*\n$/;
  expect(await said({ NO_PROXY: '10.0.0.0/8,fd00::/8 localhost' })).toMatch(range);
  expect(await said({ no_proxy: '10.0.0.0/8 fd00::/8', NO_PROXY: 'a' })).toMatch(range);
  for (const NO_PROXY of ['', '*', 'localhost,.internal:80,10.0.0.1']) {
    expect(await said({ NO_PROXY })).toBe('');
  }
});

describe('help', () => {
  test('help names every command', async () => {
    const { code, output, errors } = await call(['--help']);
    expect({ code, errors }).toEqual({ code: 0, errors: '' });
    expect(output).toMatch(/^Usage: outfit-gateway \[COMMAND\]/);
    const names = [...output.matchAll(/^ {2}([a-z]+) {2,}\w/gm)].map(([, name = '']) => name);
    expect(names).toEqual(commands);
    expect((await call(['-h'])).output).toBe(output);
  });

  test.each(commands)('help of %s says how it is used, whatever else is asked', async (name) => {
    const command = await import(`../../src/commands/${name}.ts`);
    const help = await callCommand(command, ['--help']);
    expect(help).toMatchObject({ code: 0, stderr: '' });
    expect(help.stdout).toMatch(new RegExp(`^Usage: outfit-gateway ${name} \\[options\\]`));
    expect(await callCommand(command, ['--nope', '-h'])).toEqual(help);
    expect(Math.max(...help.stdout.split('\n').map(({ length }) => length))).toBeLessThan(120);
  });

  test('help of start has each setting in its group, with what it may be and its default', async () => {
    const { output } = await call(['--port', '4399', '--help'], place, { DATA_DIR: '/dev/null' });
    const flags = [...output.matchAll(/^ {2}(--[a-z-]+) <value> {2,}\S/gm)];
    expect(flags.map(([, flag]) => flag)).toEqual(allSettings.map(({ name }) => flagOf(name)));
    const text = output.replace(/\n {6,}/g, ' ');
    expect(text).toMatch(
      /\nListing:\n {2}--page-size <value> +Outfits per page, 1 to 1000\. \(a whole number from 1 to 1000; default: 20\)\n/,
    );
    expect(text).toContain('("demo" or "none"; default: demo; none on PostgreSQL)\n');
    expect(text.match(/<value> +[A-Za-z].*?\. \(.*?; default: /g)).toHaveLength(example.length);
    expect(text).not.toContain('](');
  });

  test('--version is that of package.json, of every command', async () => {
    for (const args of [['--version'], ['migrate', '--port', '1', '--version']]) {
      expect(await call(args)).toEqual({ code: 0, output: `${version}\n`, errors: '' });
    }
  });
});

describe('a start', () => {
  test('a start prints for a person what it is and its addresses; on Ctrl-C, one good-bye', async () => {
    const environment = await migratedEnvironmentOf('embedded');
    const server = start(
      ['--seed=none', '--port', '0', '--metrics-port', '0', '--host', '127.0.0.1'],
      folderWith('LOG_FORMAT=pretty\nPORT=none\n'),
      environment,
    );
    await server.until(/Metrics: .*\n/);
    const told = server.output();
    for (const [address] of told.matchAll(/https?:\S+/g)) {
      // As a browser asks.
      const response = await fetch(address, { headers: { accept: 'text/html,*/*;q=0.8' } });
      expect({ address, status: response.status }).toEqual({ address, status: 200 });
      await response.arrayBuffer();
    }
    // The terminal sends it to npm too, which passes it on.
    for (const _sender of ['terminal', 'npm']) server.child.kill('SIGINT');
    expect(await server.ended).toBe(0);
    expect(server.errors()).toBe('');
    expect(server.output().match(/^.*SIGINT.*$/gm)).toEqual([
      expect.stringMatching(/^\[\d\d:\d\d:\d\d\] INFO: SIGINT: closing, good-bye$/),
    ]);
    const shown = told
      .replaceAll(version, 'VERSION')
      .replaceAll(environment['DATA_DIR'] ?? '', 'FOLDER')
      .replace(/\d\d:\d\d:\d\d/g, 'hh:mm:ss')
      .replace(/localhost:\d+/g, 'localhost:PORT');
    expect(shown).toMatchInlineSnapshot(`
      "[hh:mm:ss] INFO: Outfit gateway VERSION
      [hh:mm:ss] INFO: embedded database in FOLDER, 0 outfits
      [hh:mm:ss] INFO: writing is not possible: set AUTH_JWKS_URL, AUTH_JWT_SECRET or AUTH_WEBHOOK_URL to let viewers sign in
      [hh:mm:ss] INFO: Gallery:  http://localhost:PORT/
      [hh:mm:ss] INFO: REST:     http://localhost:PORT/api/outfits/
      [hh:mm:ss] INFO: GraphiQL: http://localhost:PORT/graphql
      [hh:mm:ss] INFO: API docs: http://localhost:PORT/api/docs
      [hh:mm:ss] INFO: Metrics:  http://localhost:PORT/metrics
      "
    `);
  });

  test('logs the same as JSON, with the names of levels and ISO times; an empty database has its pictures elsewhere', async () => {
    const environment = await migratedEnvironmentOf('PostgreSQL');
    const server = runServer({ ...environment, LOG_LEVEL: 'debug' });
    const base = await baseOf(server);
    await listing(base);
    const picture = `${base}/media/outfits/3ce291e6-1580-4f85-9d5e-4957ab13619f.jpeg`;
    expect((await fetch(picture)).status).toBe(404);
    expect(await stop(server)).toBe(0);
    const text = server.output().trim();
    const lines = text.split('\n').map((line) => JSON.parse(line));
    expect(lines[0]).toMatchObject({ level: 'info', version, msg: `Outfit gateway ${version}` });
    const address = `${base}/api/outfits/`;
    const told = { level: 'info', address, msg: `REST:     ${address}` };
    expect(lines).toContainEqual(expect.objectContaining(told));
    expect(lines).toContainEqual(expect.objectContaining({ level: 'debug', msg: 'answered' }));
    expect(lines.at(-1)).toMatchObject({ level: 'info', msg: 'SIGTERM: closing' });
    for (const { level, time } of lines) {
      expect(level).toMatch(/^(?:debug|info)$/);
      expect(new Date(time).toISOString()).toBe(time);
    }
  });
});
