/** What a sandbox uses, over the time that somebody has looked. */

import { Chart, type Point } from "./chart.js";
import { bytes, duration, percent } from "./format.js";
import { limitOf } from "./limits.js";
import { type Sample, samplesOf } from "./live.js";
import { Empty } from "./parts.js";
import type { Sandbox } from "./types.js";

function points(samples: Sample[], value: (sample: Sample) => number | null | undefined): Point[] {
  return samples.flatMap((sample) => {
    const figure = value(sample);
    return figure === null || figure === undefined ? [] : [{ at: sample.at, value: figure }];
  });
}

export function UsageView({ sandbox }: { sandbox: Sandbox; round: number }) {
  const samples = samplesOf(sandbox.id);
  const last = samples.at(-1)?.usage;
  const none = "Not reported";
  if (sandbox.status !== "running" && samples.length === 0) {
    return <Empty title={`The sandbox is ${sandbox.status} and uses nothing but its files' disk.`} />;
  }
  return (
    <>
      <p class="facts quiet">
        {last?.uptime_ms != null ? <span>awake for {duration(last.uptime_ms)}</span> : null}
        {last?.idle_ms != null ? <span>idle for {duration(last.idle_ms)}</span> : null}
        {last?.memory_peak_bytes != null ? <span>memory at most {bytes(last.memory_peak_bytes)}</span> : null}
        <span>gathered while this page shows the sandbox, every 2 s</span>
      </p>
      <div class="charts">
        <Chart title="Memory" points={points(samples, (one) => one.usage.memory_bytes)} say={bytes} base={2} limit={limitOf(sandbox, "memory")} note={none} />
        <Chart title="CPU" points={points(samples, (one) => one.cpu)} say={percent} limit={limitOf(sandbox, "cpus")} note="Two looks are needed." />
        <Chart title="Processes" points={points(samples, (one) => one.usage.processes)} say={String} isCount limit={limitOf(sandbox, "pids")} note={none} />
        <Chart title="Disk" points={points(samples, (one) => one.usage.disk_bytes)} say={bytes} base={2} limit={limitOf(sandbox, "disk")} note={none} />
      </div>
    </>
  );
}
