// Writes `pi_bodies.json`: the bodies that pi-ai sends for one conversation, taken by a server that keeps what it is sent.
//
//   npm install @earendil-works/pi-ai@0.76.0 && node pi_bodies.mjs > pi_bodies.json
import http from "node:http";
import { streamSimple } from "@earendil-works/pi-ai";

const bodies = [];
const server = http.createServer(async (request, response) => {
  let text = "";
  for await (const chunk of request) text += chunk;
  bodies.push(JSON.parse(text));
  response.writeHead(400, { "content-type": "application/json" });
  response.end('{"error":{"type":"invalid_request_error","message":"no"}}');
});
await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
const url = `http://127.0.0.1:${server.address().port}`;

const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
const model = (api, provider, path, more = {}) => ({
  id: "m", name: "m", api, provider, baseUrl: url + path, reasoning: true, input: ["text", "image"], cost,
  contextWindow: 0, maxTokens: 32000, ...more,
});
const adaptive = { compat: { forceAdaptiveThinking: true }, thinkingLevelMap: { xhigh: "max" } };
const models = {
  anthropic: model("anthropic-messages", "anthropic", ""),
  adaptive: model("anthropic-messages", "anthropic", "", adaptive),
  // pi-ai takes a server for OpenAI's own by this part of its address.
  completions: model("openai-completions", "openai", "/api.openai.com/v1"),
  local: model("openai-completions", "lab", "/v1"),
  responses: model("openai-responses", "openai", "/v1", { thinkingLevelMap: { off: "none" } }),
};
const signatures = {
  "anthropic-messages": "sig-1",
  "openai-completions": "reasoning_content",
  "openai-responses": '{"id":"rs_0","type":"reasoning","summary":[],"encrypted_content":"sig-1"}',
};
const tools = [
  {
    name: "read",
    description: "Read a file.",
    parameters: { type: "object", properties: { path: { type: "string" } }, required: ["path"] },
  },
  { name: "list", description: "List.", parameters: { type: "object", properties: {}, required: [] } },
];
const text = (text) => ({ type: "text", text });
const image = { type: "image", data: "aGk=", mimeType: "image/png" };

function conversation(model, isOwn) {
  const itemIds = model.api === "openai-responses" && isOwn;
  const ids = itemIds ? ["call_1|fc_1", "call_2|fc_2"] : ["call_1", "call_2"];
  const by = isOwn
    ? { api: model.api, provider: model.provider, model: model.id }
    : { api: "other-api", provider: "other", model: "other" };
  const usage = { ...cost, totalTokens: 0, cost: { ...cost, total: 0 } };
  const said = (stopReason, content) => ({ role: "assistant", ...by, usage, stopReason, timestamp: 2, content });
  const call = (id, path) => ({ type: "toolCall", id, name: "read", arguments: { path } });
  const result = (toolCallId, content, isError) => ({
    role: "toolResult", toolCallId, toolName: "read", content, isError, timestamp: 3,
  });
  return [
    { role: "user", content: [text("look"), image], timestamp: 1 },
    said("toolUse", [
      { type: "thinking", thinking: "hm", thinkingSignature: signatures[model.api] },
      text("I look."),
      call(ids[0], "a.png"),
      call(ids[1], "b.txt"),
    ]),
    result(ids[0], [text("an image"), image], false),
    result(ids[1], [text("no such file")], true),
    { role: "user", content: [text("go on")], timestamp: 5 },
    said("stop", [text("done")]),
    { role: "user", content: [text("thanks")], timestamp: 7 },
  ];
}

async function body(model, isOwn, reasoning) {
  const context = { systemPrompt: "You help.", messages: conversation(model, isOwn), tools };
  const options = { apiKey: "k", sessionId: "session-1", maxRetries: 0, maxTokens: 5000 };
  const stream = streamSimple(model, context, reasoning === "off" ? options : { ...options, reasoning });
  for await (const _ of stream);
  return bodies.pop();
}

const lines = [];
for (const [name, model] of Object.entries(models)) {
  const cases = [["own", "off"], ["own", "medium"], ["foreign", "medium"]];
  if (name === "adaptive") cases.splice(2, 0, ["own", "high"]);
  for (const [whose, reasoning] of cases) {
    const sent = await body(model, whose === "own", reasoning);
    lines.push(`${JSON.stringify(`${name} ${whose} ${reasoning}`)}: ${JSON.stringify(sent)}`);
  }
}
console.log(`{\n${lines.join(",\n")}\n}`);
server.close();
