// The operations and lines of the table in docs/legacy-paths.md and CONTRIBUTING.md pass generate and check, as typed in.
import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';

const root = fileURLToPath(new URL('../../', import.meta.url));
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const blocksOf = (text: string, language: string) =>
  [...text.matchAll(new RegExp(`^ *\`\`\`${language}\n([\\s\\S]*?)\`\`\``, 'gm'))].map(
    ([, block = '']) => block,
  );

test('the recipes for REST paths compile', { timeout: 180_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'outfit-recipes-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const copied = ['src', 'prisma', 'test/support/graphql', 'codegen.ts', 'package.json'];
  for (const path of copied) cpSync(join(root, path), join(folder, path), { recursive: true });
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  const { compilerOptions } = JSON.parse(read('tsconfig.json'));
  const config = { compilerOptions, include: ['src/rest', 'src/app.ts'] };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config));

  let [operations, lines, number] = ['', '', 0];
  for (const section of read('docs/legacy-paths.md').split(/^## /m)) {
    const [operation] = blocksOf(section, 'graphql stored');
    const [line = ''] = blocksOf(section, 'ts');
    if (!operation) continue;
    // Several lists in one file: each gets a name and a path of its own.
    number++;
    operations += operation.replace('ListOutfits', `ListOutfits${number}`);
    lines += line
      .replace('ListOutfits', `ListOutfits${number}`)
      .replace('/api/', `/api/${number}/`);
  }
  const contributing = read('CONTRIBUTING.md').split('## How to add a REST path')[1] ?? '';
  const [popular = ''] = blocksOf(contributing, 'graphql');
  operations += popular.replace('ReadUser', 'ReadOneUser');
  for (const name of ['list: ListPopularOutfits', 'record: ReadOneUser']) {
    lines += `{ path: '/api/${name.length}/:id/', name: 'One', description: 'One.', ${name}Document },`;
  }
  const added = [...lines.matchAll(/\w+Document/g)].map(([name]) => name);
  expect(new Set(added).size).toBe(number + 3);

  const documents = join(folder, 'src/rest/outfits.graphql');
  writeFileSync(documents, `${readFileSync(documents, 'utf8')}\n${operations}`);
  const table = join(folder, 'src/rest/routes.ts');
  const routes = readFileSync(table, 'utf8')
    .replace(/\n];\n/, `\n${lines}];\n`)
    .replace(/import \{[^}]*\} from '..\/generated\/rest.ts';/, (text) =>
      text.replace(/\{[^}]*\}/, (names) => {
        const all = new Set([...(names.match(/\w+/g) ?? []), ...added]);
        return `{ ${[...all].join(', ')} }`;
      }),
    );
  writeFileSync(table, routes);
  const options = { cwd: folder, stdio: 'pipe', encoding: 'utf8' } as const;
  const run = (...args: string[]) => {
    try {
      return execFileSync(process.execPath, args, options);
    } catch (error) {
      throw new Error(String(Reflect.get(error as object, 'stdout')), { cause: error });
    }
  };
  run('--import', 'tsx', 'codegen.ts');
  run(join(root, 'node_modules/typescript/bin/tsc'), '-p', '.', '--noEmit');
});
