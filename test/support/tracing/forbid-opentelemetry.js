// With --import: what is loaded and has code of OpenTelemetry's in it fails. Except that prom-client takes the
// interface alone, 50 KB that do nothing, whether anything is traced or not.
import { register } from 'node:module';

// The bundler names each file above its code, by its real path: node_modules may be a link.
const hooks = `export const load = async (url, context, next) => {
  const loaded = await next(url, context);
  if (/^\\/\\/ \\S*node_modules\\/@opentelemetry\\/(?!api\\/)/m.test(String(loaded.source))) {
    throw new Error('OpenTelemetry was loaded');
  }
  return loaded;
};`;
register(`data:text/javascript,${encodeURIComponent(hooks)}`);
