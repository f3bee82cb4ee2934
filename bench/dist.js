// The compiled service. Imported by a computed path, because its types are those of src/.

/** @param {string} file below dist */
const load = (file) => import(new URL(`../dist/${file}`, import.meta.url).href);

/** @returns {Promise<typeof import('../src/demo/generate.ts')>} */
export const importGenerate = () => load('demo/generate.js');

/** @returns {Promise<typeof import('../src/outfits/cursor.ts')>} */
export const importCursor = () => load('outfits/cursor.js');

/** @returns {Promise<typeof import('../src/outfits/bulk.ts')>} */
export const importBulk = () => load('outfits/bulk.js');

/** @returns {Promise<typeof import('../src/outfits/by-id.ts')>} */
export const importById = () => load('outfits/by-id.js');

/** @returns {Promise<typeof import('../src/outfits/user-pages.ts')>} */
export const importUserPages = () => load('outfits/user-pages.js');
/** @returns {Promise<typeof import('../src/outfits/user-lists.ts')>} */
export const importUserLists = () => load('outfits/user-lists.js');

/** @returns {Promise<typeof import('../src/database/migrations.ts')>} */
export const importMigrations = () => load('database/migrations.js');

/** @returns {Promise<typeof import('../src/database/database.ts')>} */
export const importDatabase = () => load('database/database.js');

/** @returns {Promise<typeof import('../src/graphql/schema.ts')>} */
export const importSchema = () => load('graphql/schema.js');

/** @returns {Promise<typeof import('../src/config.ts')>} */
export const importConfig = () => load('config.js');

/** @returns {Promise<typeof import('../src/database/snapshots.ts')>} */
export const importSnapshots = () => load('database/snapshots.js');
