/** The README's programs compile against what the package exports. */

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import ts from "typescript";

const PACKAGE = fileURLToPath(new URL("../..", import.meta.url));

/** What the programs take for granted: their imports and declarations. */
const GIVEN: [name: string, declaration: string][] = [
  ["client", 'declare const client: import("@eyot/client").EyotClient;'],
  ["anthropic", 'declare const anthropic: import("@anthropic-ai/sdk").default;'],
  ["messages", 'declare const messages: import("@anthropic-ai/sdk").default.MessageParam[];'],
  ["max_tokens", "declare const max_tokens: number;"],
];

/** A program with what it takes for granted. */
function complete(snippet: string): string {
  const isMissing = (name: string): boolean => snippet.includes(name) && !new RegExp(`const (\\{ )?${name}\\b`).test(snippet);
  const model = snippet.includes("anthropic.") ? "string" : 'import("ai").LanguageModel';
  const given = [...GIVEN, ["model", `declare const model: ${model};`] as const].filter(([name]) => isMissing(name));
  return [...given.map(([, declaration]) => declaration), snippet, "export {};"].join("\n");
}

test("every program of the README compiles", () => {
  const readme = readFileSync(join(PACKAGE, "README.md"), "utf8");
  const snippets = [...readme.matchAll(/```ts\n(.*?)```/gs)].map(([, snippet]) => snippet ?? "");
  assert.ok(snippets.some((snippet) => snippet.includes("aiSdkTools(client")));
  // Within the package, whose name is then known.
  const folder = mkdtempSync(join(PACKAGE, ".test-build", "readme-"));
  try {
    const files = snippets.map((snippet, at) => {
      const file = join(folder, `${at}.ts`);
      writeFileSync(file, complete(snippet));
      return file;
    });
    const options: ts.CompilerOptions = {
      module: ts.ModuleKind.NodeNext,
      moduleResolution: ts.ModuleResolutionKind.NodeNext,
      target: ts.ScriptTarget.ES2022,
      lib: ["lib.esnext.d.ts"],
      types: ["node"],
      strict: true,
      noEmit: true,
      skipLibCheck: true,
    };
    const found = ts.getPreEmitDiagnostics(ts.createProgram(files, options));
    const said = found.map(({ file, messageText }) => `${file?.fileName.slice(folder.length)}: ${ts.flattenDiagnosticMessageText(messageText, "\n")}`);
    assert.deepEqual(said, []);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
