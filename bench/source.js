// Modules of the service, of which dist/ has only the whole. Imported by a computed path: an import of
// TypeScript is none that this Node.js could do by itself.
import { register } from 'tsx/esm/api';

register();

/** @param {string} file below src */
const load = (file) => import(new URL(`../src/${file}`, import.meta.url).href);

/** @returns {Promise<typeof import('./outfits/generate.ts')>} */
export const importGenerate = () => load('../bench/outfits/generate.ts');

/** @returns {Promise<typeof import('../src/outfits/ordering.ts')>} */
export const importOrdering = () => load('outfits/ordering.ts');

/** @returns {Promise<typeof import('../src/outfits/writes/bulk.ts')>} */
export const importBulk = () => load('outfits/writes/bulk.ts');

/** @returns {Promise<typeof import('../src/outfits/lists/by-id.ts')>} */
export const importById = () => load('outfits/lists/by-id.ts');

/** @returns {Promise<typeof import('../src/outfits/lists/list.ts')>} */
export const importList = () => load('outfits/lists/list.ts');

/** @returns {Promise<typeof import('../src/outfits/lists/users.ts')>} */
export const importLikers = () => load('outfits/lists/users.ts');

/** @returns {Promise<typeof import('../src/database/migrations.ts')>} */
export const importMigrations = () => load('database/migrations.ts');

/** @returns {Promise<typeof import('../src/database/database.ts')>} */
export const importDatabase = () => load('database/database.ts');

/** @returns {Promise<typeof import('../src/graphql/schema.ts')>} */
export const importSchema = () => load('graphql/schema.ts');

/** @returns {Promise<typeof import('../src/config/config.ts')>} */
export const importConfig = () => load('config/config.ts');

/** @returns {Promise<typeof import('../src/database/changes/snapshots.ts')>} */
export const importSnapshots = () => load('database/changes/snapshots.ts');

/** @returns {Promise<typeof import('../src/attach/attach.ts')>} */
export const importAttach = () => load('attach/attach.ts');

/** @returns {Promise<typeof import('../src/attach/mapping.ts')>} */
export const importMapping = () => load('attach/mapping.ts');
