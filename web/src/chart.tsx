/** Small charts, drawn by hand: a line over time. */

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

/** A chart with its last value, its highest, and a line where the limit is. */
/** Returns the next round figure: 1, 2 or 5 times a power of ten, or a power of two for bytes. */
export function roundUp(value: number, base: 2 | 10): number {
  if (base === 2) return 2 ** Math.ceil(Math.log2(value));
  const power = 10 ** Math.floor(Math.log10(value));
  return ([1, 2, 5].find((step) => step * power >= value * (1 - 1e-9)) ?? 10) * power;
}

export function Chart({ title, points, say, limit, note, base = 10 }: {
  title: string;
  points: Point[];
  say: (value: number) => string;
  limit?: number;
  note?: string;
  /** Of the scale: 2 for bytes. */
  base?: 2 | 10;
}) {
  const last = points.at(-1);
  const most = Math.max(...points.map((point) => point.value), 0);
  // A limit far above what is used would flatten the line.
  const isNear = limit !== undefined && most > limit / 4;
  const top = roundUp((isNear ? Math.max(limit, most) : most * 1.05) || 1, base);
  const from = points[0]?.at ?? 0;
  const span = Math.max(1, (last?.at ?? 0) - from);
  const place = (point: Point) => `${(((point.at - from) / span) * 300).toFixed(1)},${(100 - (point.value / top) * 100).toFixed(1)}`;
  const line = points.map(place).join(" ");
  const words = last ? `now ${say(last.value)}, at most ${say(most)} in the last ${Math.round(span / 1000)} s` : "no figures";
  const facts = [
    ...(last ? [`peak ${say(most)}, last ${Math.max(1, Math.round(span / 1000))} s`] : []),
    ...(limit !== undefined ? [`limit ${say(limit)}`] : []),
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
          {isNear && limit !== undefined ? <line class="limit" x1="0" x2="300" y1={100 - (limit / top) * 100} y2={100 - (limit / top) * 100} /> : null}
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
