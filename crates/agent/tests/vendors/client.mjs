// Asks a stand-in for one answer with the vendor's own client, and prints what the client made of it.
//
//   node client.mjs messages|completions|responses URL TRIES
//
// The line is `{"answer": …, "deltas": N}`, or `{"error": {"status", "type"}}`.
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";

const [api, baseURL, tries] = process.argv.slice(2);
const options = { apiKey: "key-of-the-tests", baseURL, maxRetries: Number(tries) - 1 };
const tools = [{ name: "read", description: "Read a file.", schema: { type: "object", properties: {} } }];

const asks = {
  async messages() {
    const stream = new Anthropic(options).messages.stream({
      model: "m",
      max_tokens: 1000,
      messages: [{ role: "user", content: "hello" }],
      tools: tools.map(({ name, description, schema }) => ({ name, description, input_schema: schema })),
    });
    return { deltas: await count(stream, "content_block_delta"), answer: await stream.finalMessage() };
  },
  async completions() {
    const stream = new OpenAI(options).chat.completions.stream({
      model: "m",
      messages: [{ role: "user", content: "hello" }],
      stream_options: { include_usage: true },
      tools: tools.map(({ name, description, schema }) => ({
        type: "function",
        function: { name, description, parameters: schema },
      })),
    });
    return { deltas: await count(stream), answer: await stream.finalChatCompletion() };
  },
  async responses() {
    const stream = new OpenAI(options).responses.stream({
      model: "m",
      input: "hello",
      tools: tools.map(({ name, description, schema }) => ({
        type: "function",
        name,
        description,
        parameters: schema,
        strict: false,
      })),
    });
    return { deltas: await count(stream), answer: await stream.finalResponse() };
  },
};

async function count(stream, type) {
  let events = 0;
  for await (const event of stream) events += !type || event.type === type ? 1 : 0;
  return events;
}

try {
  console.log(JSON.stringify(await asks[api]()));
} catch (error) {
  const type = error.type ?? error.error?.error?.type ?? error.code ?? error.constructor.name;
  console.log(JSON.stringify({ error: { status: error.status ?? null, type, text: String(error) } }));
}
