/** Compiles where the adapter's types fit those of runtime 0.8.1. */

import { type SandboxFactory, createAgent } from "@flue/runtime";
import { EyotClient } from "@eyot/client";
import { eyot, eyotPool } from "@eyot/client/flue";

const client = new EyotClient();
export const factories: SandboxFactory[] = [eyot(client.sandbox("x")), eyotPool(client)];
export default createAgent(() => ({ sandbox: eyotPool(client), model: false }));
