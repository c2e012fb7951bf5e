/** Between this client's `camelCase` and the wire's `snake_case`, leaving alone the names that are the user's own. */

/** Fields whose own fields have names that the user chose. */
const NAMED_BY_THE_USER = new Set(["env", "labels", "metadata", "files", "extra_hosts", "tmpfs_mib"]);

const toSnake = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
/** A name in this client's form. */
export const toCamel = (name: string): string => name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());

/** As it goes over the wire. */
export function toWire(value: unknown): unknown {
  return converted(value, toSnake);
}

/** As it comes from the wire. */
export function fromWire<T>(value: unknown): T {
  return converted(value, toCamel) as T;
}

function converted(value: unknown, rename: (name: string) => string): unknown {
  if (value instanceof Uint8Array) return Array.from(value);
  if (Array.isArray(value)) return value.map((item) => converted(item, rename));
  if (value === null || typeof value !== "object") return value;
  const fields = Object.entries(value).filter(([, field]) => field !== undefined);
  return Object.fromEntries(fields.map(([name, field]) => [rename(name), isOpen(name) ? asIs(field) : converted(field, rename)]));
}

const isOpen = (name: string): boolean => NAMED_BY_THE_USER.has(toSnake(name));

/** A map of the user's: its names stay, bytes in it become numbers. */
function asIs(value: unknown): unknown {
  return converted(value, (name) => name);
}
