/** Lets `@flue/runtime` be 0.8.1, the one of `test/flue-v1`, for whoever imports it. */

import * as module from "node:module";

type Resolve = (specifier: string, context: object) => object;
type Hooks = { resolve(specifier: string, context: object, next: Resolve): object };
const { registerHooks } = module as unknown as { registerHooks(hooks: Hooks): void };
const parentURL = new URL("../../test/flue-v1/package.json", import.meta.url).href;

registerHooks({
  resolve(specifier, context, next) {
    return next(specifier, specifier === "@flue/runtime" ? { ...context, parentURL } : context);
  },
});
