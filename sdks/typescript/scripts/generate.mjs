// Writes src/openapi.ts from the server's OpenAPI document; with --check, fails where it is not that already. Operations of the same id, which the document has, are told
// apart by their tag: `list` becomes `files_list`.

import { readFile, writeFile } from "node:fs/promises";
import openapiTS, { astToString } from "openapi-typescript";

const document = JSON.parse(await readFile(new URL("../../../crates/server/openapi.json", import.meta.url), "utf8"));
const operations = Object.values(document.paths).flatMap((path) => Object.values(path)).filter((operation) => operation.operationId);
const times = (id) => operations.filter((operation) => operation.operationId === id).length;
const shared = operations.filter(({ operationId }) => times(operationId) > 1);
for (const operation of shared) operation.operationId = `${operation.tags[0]}_${operation.operationId}`;

const header = "/** Generated from crates/server/openapi.json by `npm run generate`; not edited by hand. */\n\n";
const types = await openapiTS(document, { defaultNonNullable: false });
const file = new URL("../src/openapi.ts", import.meta.url);
const wanted = header + astToString(types);
if (!process.argv.includes("--check")) {
  await writeFile(file, wanted);
} else if ((await readFile(file, "utf8")) !== wanted) {
  console.error("src/openapi.ts is not what crates/server/openapi.json says: npm run generate");
  process.exit(1);
}
