/** How tools say what a program wrote. */

/** Both streams of a program, or the ends of them. */
export type Output = {
  stdout: string;
  stderr: string;
  stdoutTruncated: boolean;
  stderrTruncated: boolean;
};

/** One part for each stream in which there is something, without the space at its end, and one where something is missing. */
export function outputParts(output: Output): string[] {
  const parts: string[] = [];
  if (output.stdout.length > 0) parts.push(`stdout:\n${output.stdout.trimEnd()}`);
  if (output.stderr.length > 0) parts.push(`stderr:\n${output.stderr.trimEnd()}`);
  if (output.stdoutTruncated || output.stderrTruncated) parts.push("output_truncated: true");
  return parts;
}
