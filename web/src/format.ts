/** Figures and times as people read them. */

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

export function bytes(count: number | null | undefined): string {
  if (count === null || count === undefined) return "–";
  let value = count;
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit > 0 && value < 10 ? value.toFixed(1) : Math.round(value)} ${UNITS[unit]}`;
}

/** A number with its thousands apart. */
export function count(value: number): string {
  return value.toLocaleString("en");
}

/** A length of time in its largest unit, and the next where that says much: `5 s`, `3 min`, `2 h 10 min`, `4 d`. */
export function duration(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 10) return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  return hours < 48 ? `${hours} h` : `${Math.floor(hours / 24)} d`;
}

/** How long something took, in milliseconds where it was short. */
export function took(ms: number): string {
  return ms < 1000 ? `${Math.round(ms)} ms` : ms < 10_000 ? `${(ms / 1000).toFixed(1)} s` : duration(ms);
}

export function percent(share: number | null | undefined): string {
  if (share === null || share === undefined) return "–";
  const value = share * 100;
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} %`;
}

/** A time of day, with its date where that is not today's. */
export function clock(ms: number): string {
  const at = new Date(ms);
  const now = new Date();
  const time = at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });
  if (at.toDateString() === now.toDateString()) return time;
  const year = at.getFullYear() === now.getFullYear() ? undefined : "numeric";
  return `${at.toLocaleDateString([], { day: "numeric", month: "short", year })} ${time}`;
}

/** A time with its weekday, its date and its zone. */
export function fullTime(ms: number): string {
  return new Date(ms).toLocaleString([], { dateStyle: "full", timeStyle: "long" });
}

/** Text without what only a terminal understands. */
export function plain(text: string): string {
  return text.replace(/\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])/g, "").replace(/\r(?!\n)/g, "\n");
}
