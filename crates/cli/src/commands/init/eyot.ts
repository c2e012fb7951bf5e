// flue-blueprint: sandbox/eyot@1

import { EyotClient } from "@eyot/client";
import { eyotPool } from "@eyot/client/flue";

/** The server of EYOT_SERVER, with the key of EYOT_API_KEY; without one, a server that starts and ends with this process. */
const client = new EyotClient();

/**
 * A sandbox for each agent instance, found again by its id. It sleeps after an hour without use, with its files, and wakes with
 * the next; nothing destroys it but its `lifecycle` or `eyot rm`.
 */
export const eyot = eyotPool(client, {
  spec: { lifecycle: { idleTimeoutMs: 3_600_000, onIdle: "sleep" } },
});
