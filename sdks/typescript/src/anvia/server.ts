/** The server behind `DockerSandbox`: one that runs already, or one for this process, which all that ask alike share. */

import { EyotClient } from "../client.js";
import { SandboxDockerUnavailableError } from "./errors.js";
import { type IsolationProvider, type SettledOptions, namesHostNetwork, networkMode } from "./options.js";

const shared = new Map<string, EyotClient>();

/** The client to use. Asking touches nothing. */
export function clientOf({ eyot, provider, network }: SettledOptions): EyotClient {
  if (eyot instanceof EyotClient) return eyot;
  const networks = namesHostNetwork(networkMode(network)) ? { allowHostNetworks: true } : {};
  // A server that runs already has what it was started with.
  const isNamed = eyot?.url ?? process.env["EYOT_SERVER"];
  const options = { ...(isNamed ? {} : { provider, ...networks }), ...eyot };
  const key = JSON.stringify(Object.entries(options).sort());
  const client = shared.get(key) ?? new EyotClient(options);
  shared.set(key, client);
  return client;
}

const known = new WeakMap<EyotClient, Promise<string>>();

/** Refuses a server whose sandboxes are of another kind than was asked for: weaker isolation is never given in silence. */
export async function checkProvider(client: EyotClient, provider: IsolationProvider): Promise<void> {
  const asked = known.get(client) ?? client.capabilities().then((answer) => answer.provider);
  known.set(client, asked);
  const found = await asked.catch((error: unknown) => {
    known.delete(client);
    throw error;
  });
  if (found === provider) return;
  const message = `The Eyot server has sandboxes of "${found}", not of "${provider}": give the option provider: "${found}", or start it with \`eyot serve --provider ${provider}\`.`;
  throw new SandboxDockerUnavailableError(message);
}
