/** Small charts, drawn by hand: a line over time. */

import { type Limit, limitText } from "./limits.js";

/** A line without words, for a row of the list. */
export function Spark({ values }: { values: number[] }) {
  if (values.length < 2) return <svg class="spark" viewBox="0 0 60 16" aria-hidden="true" />;
  const most = Math.max(0.05, ...values);
  const points = values.map((value, at) => `${((at / (values.length - 1)) * 60).toFixed(1)},${(15 - (value / most) * 14).toFixed(1)}`);
  return <svg class="spark" viewBox="0 0 60 16" aria-hidden="true"><polyline points={points.join(" ")} /></svg>;
}

export interface Point {
  at: number;
  value: number;
}

/** Returns the next round figure: 1, 2 or 5 times a power of ten, or a power of two for bytes. */
export function roundUp(value: number, base: 2 | 10): number {
  if (base === 2) return 2 ** Math.ceil(Math.log2(value));
  const power = 10 ** Math.floor(Math.log10(value));
  return ([1, 2, 5].find((step) => step * power >= value * (1 - 1e-9)) ?? 10) * power;
}

/** Returns the top of a scale that has a tick in its middle. The ticks of counts are whole. */
function topOf(most: number, base: 2 | 10, isCount: boolean): number {
  return isCount ? 2 * roundUp(Math.max(1, most / 2), base) : roundUp(most || 1, base);
}

/** A chart with its last value, its highest, and a line where the limit is held. */
export function Chart({ title, points, say, limit, note, base = 10, isCount = false }: {
  title: string;
  points: Point[];
  say: (value: number) => string;
  limit?: Limit;
  note?: string;
  /** Of the scale: 2 for bytes. */
  base?: 2 | 10;
  /** There is no half of what is counted. */
  isCount?: boolean;
}) {
  const last = points.at(-1);
  const most = Math.max(...points.map((point) => point.value), 0);
  const held = limit?.isEnforced ? limit.figure : undefined;
  // A limit far above what is used would flatten the line.
  const isNear = held !== undefined && most > held / 4;
  const top = topOf(isNear ? Math.max(held, most) : most * 1.05, base, isCount);
  const from = points[0]?.at ?? 0;
  const span = Math.max(1, (last?.at ?? 0) - from);
  const place = (point: Point) => `${(((point.at - from) / span) * 300).toFixed(1)},${(100 - (point.value / top) * 100).toFixed(1)}`;
  const line = points.map(place).join(" ");
  const words = last ? `now ${say(last.value)}, at most ${say(most)} in the last ${Math.round(span / 1000)} s` : "no figures";
  const facts = [
    ...(last ? [`peak ${say(most)}, last ${Math.max(1, Math.round(span / 1000))} s`] : []),
    ...(limit ? [`limit ${limitText(limit, say)}`] : []),
  ];
  return (
    <figure class="chart">
      <figcaption>
        <span>{title}</span>
        <strong>{last ? say(last.value) : "–"}</strong>
      </figcaption>
      {points.length > 1 ? (
        <div class="plot">
        <div class="scale" aria-hidden="true">{[top, top / 2, 0].map((value) => <span key={value}>{say(value)}</span>)}</div>
        <svg viewBox="0 0 300 100" preserveAspectRatio="none" role="img" aria-label={`${title}: ${words}`}>
          <line class="grid" x1="0" x2="300" y1="0" y2="0" /><line class="grid" x1="0" x2="300" y1="50" y2="50" /><line class="grid" x1="0" x2="300" y1="100" y2="100" />
          <polygon points={`0,100 ${line} 300,100`} />
          <polyline points={line} />
          {isNear && held !== undefined ? <line class="limit" x1="0" x2="300" y1={100 - (held / top) * 100} y2={100 - (held / top) * 100} /> : null}
        </svg>
        <div class="times" aria-hidden="true"><span>{Math.round(span / 1000)} s ago</span><span>now</span></div>
        </div>
      ) : <div class="chart-empty quiet">{note && !last ? note : "Gathering…"}</div>}
      <p class="hint">
        {facts.join(" · ")}
      </p>
    </figure>
  );
}
