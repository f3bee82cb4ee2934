import { transformAsync } from '@babel/core';
import { defineConfig, type Plugin } from 'vite';

/** Puts the compiled document in place of each text of one, as Relay needs it. */
const relay: Plugin = {
  name: 'relay',
  enforce: 'pre',
  async transform(code, filename) {
    if (!code.includes('graphql`') || !filename.includes('/relay/')) return null;
    const result = await transformAsync(code, {
      filename,
      plugins: ['babel-plugin-relay'],
      parserOpts: { plugins: ['jsx', 'typescript'] },
      sourceMaps: true,
    });
    return result?.code ? { code: result.code, map: result.map } : null;
  },
};

export default defineConfig({
  plugins: [relay],
  server: { port: 5173, strictPort: true },
  build: {
    rollupOptions: {
      input: ['apollo/index.html', 'urql/index.html', 'relay/index.html', 'events/index.html'],
    },
  },
});
