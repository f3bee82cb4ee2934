// With --import: whatever loads a package of OpenTelemetry, as a module of either kind, fails. Except that
// prom-client takes the interface alone, 50 KB that do nothing, whether anything is traced or not.
import Module, { register } from 'node:module';

/** @type {{ _resolveFilename: (specifier: string, parent: { filename?: string } | undefined, ...rest: unknown[]) => string }} */
const loader = /** @type {any} */ (Module);
const resolve = loader._resolveFilename;
loader._resolveFilename = (specifier, parent, ...rest) => {
  const isInterface =
    specifier === '@opentelemetry/api' && parent?.filename?.includes('prom-client');
  if (specifier.startsWith('@opentelemetry/') && !isInterface) {
    throw new Error('OpenTelemetry was loaded');
  }
  return resolve(specifier, parent, ...rest);
};

const hooks = `export const resolve = (specifier, context, next) => {
  if (specifier.startsWith('@opentelemetry/')) throw new Error('OpenTelemetry was loaded');
  return next(specifier, context);
};`;
register(`data:text/javascript,${encodeURIComponent(hooks)}`);
