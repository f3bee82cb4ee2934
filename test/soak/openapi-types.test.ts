// The types in test/golden/openapi.ts, which a client is checked against, are those of the document.
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { openGateway } from '../gateway.ts';
import { secret } from '../tokens.ts';

// It works with TypeScript 5 alone, which is not that of this project: npm fetches both for a moment.
const packages = ['openapi-typescript@7.13.0', 'typescript@5.9.3'];

test('openapi-typescript makes the types of the document', async () => {
  const gateway = await openGateway('PostgreSQL', [], { AUTH_JWT_SECRET: secret });
  const folder = mkdtempSync(join(tmpdir(), 'outfit-gateway-types-'));
  try {
    const { body } = await gateway.get('/api/openapi.json');
    writeFileSync(join(folder, 'openapi.json'), body);
    const wanted = packages.map((name) => `--package=${name}`);
    const command = ['openapi-typescript', 'openapi.json', '--output=openapi.ts'];
    await promisify(execFile)('npx', ['--yes', ...wanted, '--', ...command], { cwd: folder });
    const types = readFileSync(join(folder, 'openapi.ts'), 'utf8');
    await expect(types).toMatchFileSnapshot('../golden/openapi.ts');
  } finally {
    await gateway.close();
    rmSync(folder, { recursive: true, force: true });
  }
});
