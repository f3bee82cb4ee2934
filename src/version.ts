// The version of package.json.
import { readFileSync } from 'node:fs';
import { packageFolder } from './package-folder.ts';

const manifest = new URL('package.json', packageFolder);

export const version: string = JSON.parse(readFileSync(manifest, 'utf8')).version;
