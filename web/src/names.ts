/** Names of sandboxes as the command line shows them. */

/** The pool whose name is left out. */
const DEFAULT = "default";

/** Returns NAME in the pool `default` or in no pool, POOL/NAME in any other. */
export function shownName(name: string, pool: string | undefined): string {
  return !pool || pool === DEFAULT ? name : `${pool}/${name}`;
}

/** Returns the shown name of a sandbox. */
export function nameOf({ name, pool }: { name: string; pool: string }): string {
  return shownName(name, pool);
}
