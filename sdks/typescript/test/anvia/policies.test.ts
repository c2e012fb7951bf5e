/** Every case of the table of policies: the same decision in the same words as Anvia 0.6.0, whose answers the table has. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { SandboxToolPolicyError } from "../../dist/anvia/errors.js";
import { createSandboxTools } from "../../dist/anvia/tools/index.js";
import type { SandboxToolName } from "../../dist/anvia/types.js";
import { managedSession, plainSession } from "./plain_session.js";

type Input = { command?: string; env?: Record<string, string> };
type Word = "blocked" | "notAllowed" | "variable";
type Refused = Partial<Record<Word, string[]>>;
type Table = {
  messages: Record<Word, string>;
  requests: Record<string, Input>;
  programs: { exec: object; anvia?: Refused; eyot?: Refused }[];
  calls: { tool: SandboxToolName; options: object; input: Input; refusal: string | null; plain?: true }[];
};
type Call = { tool: SandboxToolName; options: object; input: object; plain?: true | undefined };

const TABLE: Table = JSON.parse(
  readFileSync(new URL("../../../../crates/tools/tests/tools/anvia_policies.json", import.meta.url), "utf8"),
);

/** The words of a refusal, or `null` where the call is let through. */
async function refusal({ tool, options, input, plain }: Call): Promise<string | null> {
  const { session } = plain ? plainSession() : managedSession();
  try {
    const [made] = createSandboxTools(session, { ...options, allow: [tool] });
    await made?.call(input as never);
    return null;
  } catch (error) {
    assert.ok(error instanceof SandboxToolPolicyError, String(error));
    return error.message;
  }
}

/** The sentence for a request that a row names, or `null`. */
function sentence(refused: Refused = {}, name: string, { command = "", env = {} }: Input): string | null {
  const word = (Object.keys(refused) as Word[]).find((key) => refused[key]?.includes(name));
  if (word === undefined) return null;
  return TABLE.messages[word] + (word === "variable" ? Object.keys(env)[0] : command);
}

for (const tool of ["exec_command", "start_process"] as const) {
  for (const { exec, anvia, eyot } of TABLE.programs) {
    test(`${tool} decides about programs as the table says: ${JSON.stringify(exec)}`, async () => {
      for (const [name, input] of Object.entries(TABLE.requests)) {
        const expected = sentence(anvia, name, input) ?? sentence(eyot, name, input);
        assert.equal(await refusal({ tool, options: { exec }, input }), expected, name);
      }
    });
  }
}

for (const { refusal: expected, ...call } of TABLE.calls) {
  test(`a limit: ${call.tool} ${JSON.stringify(call.options)} ${JSON.stringify(call.input).slice(0, 80)}`, async () => {
    assert.equal(await refusal(call), expected);
  });
}

test("the table names only requests that there are", () => {
  const named = TABLE.programs.flatMap(({ anvia = {}, eyot = {} }) => [...Object.values(anvia), ...Object.values(eyot)].flat());
  assert.deepEqual(named.filter((name) => !(name in TABLE.requests)), []);
});
