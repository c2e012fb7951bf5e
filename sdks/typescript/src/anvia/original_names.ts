/** What `@anvia/sandbox` calls some of the types of `types.ts`: code that names them finds them. */

import type { SandboxCreateSessionOptions } from "./types.js";

export type {
  SandboxProcess as SandboxProcessInfo,
  SandboxStartProcessOptions as SandboxProcessStartOptions,
  SandboxStopProcessOptions as SandboxProcessStopOptions,
  SandboxTextFilePage as SandboxTextFileReadResult,
  SandboxTextFilePageOptions as SandboxTextFileReadOptions,
} from "./types.js";

/** What `DockerSandbox.createSession` takes: there the ports are an option of its own. */
export type DockerSandboxCreateSessionOptions = SandboxCreateSessionOptions;
