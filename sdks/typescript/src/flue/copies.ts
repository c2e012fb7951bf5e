/** Looks for a second copy of Flue's runtime: its wrapper and its error classes would not be those that the agent uses. */

import { EyotError } from "../error.js";

const PACKAGE = "@flue/runtime";
/** A module's folder up to the package, as it stands in a stack and in an address. */
const COPY = /file:\/\/\S*?\/@flue\/runtime(?=\/)/;

/**
 * Refuses a call that comes from another copy of the runtime than the one that is imported here. To be called before anything
 * is awaited: the caller is on the stack only then.
 */
export function refuseSecondCopy(stack: string | undefined = new Error().stack): void {
  const [theirs, ours] = [COPY.exec(stack ?? "")?.[0], ownCopy()];
  if (theirs === undefined || ours === undefined || theirs === ours) return;
  throw new EyotError(`there are two copies of ${PACKAGE}: the agent's and that of @eyot/client, which knows nothing of the agent's deadlines and error classes`, {
    kind: "conflict",
    hint: `install @eyot/client from what \`npm pack\` makes of it, or with \`npm install --install-links\`, instead of as a link (the agent has ${theirs}, @eyot/client has ${ours})`,
  });
}

function ownCopy(): string | undefined {
  // Bundlers and old Nodes have none; what they load is not looked at.
  const resolve = import.meta.resolve as ((name: string) => string) | undefined;
  try {
    return COPY.exec(resolve?.(PACKAGE) ?? "")?.[0];
  } catch {
    return undefined;
  }
}
