/**
 * `@anvia/sandbox` over Eyot: a program that imports it runs when only the import changes. What differs on purpose stands in
 * docs/anvia.md.
 */

export { DockerSandbox } from "./docker_sandbox.js";
export * from "./errors.js";
export { isSandboxPortSession, isSandboxProcessSession, isSandboxTextPageSession } from "./guards.js";
export type * from "./original_names.js";
export type { EyotSandboxOptions, IsolationProvider } from "./options.js";
export { containerPath, normalizeSandboxPath, parentSandboxPath } from "./paths.js";
export { createTextFilePage } from "./text_page.js";
export { createSandboxTools } from "./tools/index.js";
export type * from "./types.js";
