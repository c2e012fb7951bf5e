/**
 * A stand-in for a model server: it speaks chat completions as a stream, and does what a test has planned for a prompt. A plan is
 * a list of turns: `think`, `say` (a text, or its pieces; at `HOLD` it waits until the test lets it go on), `calls`, and `status`
 * for a failure. Behind the last turn, and for any other prompt, it tells which prompts it remembers.
 */

import { createServer } from "node:http";

const textOf = ({ content }) => (typeof content === "string" ? content : (content ?? []).map((part) => part.text ?? "").join(""));

/** Returns the turn that comes next in a conversation. */
function nextTurn(plans, messages) {
  const last = messages.findLastIndex(({ role }) => role === "user");
  const prompt = textOf(messages[last]);
  const done = messages.slice(last).filter(({ role }) => role === "assistant").length;
  const prompts = messages.filter(({ role }) => role === "user").map(textOf);
  return plans.get(prompt)?.[done] ?? { say: `I remember: ${prompts.join(" / ")}` };
}

/** Starts it. `release` lets the turns go on that hold, and `held` comes back once one does. */
export async function standIn() {
  const holding = [];
  const waiting = [];
  const hold = () => new Promise((done) => {
    holding.push(done);
    for (const told of waiting.splice(0)) told();
  });
  const held = () => (holding.length > 0 ? Promise.resolve() : new Promise((done) => waiting.push(done)));
  const release = () => holding.splice(0).forEach((done) => done());
  const plans = new Map();
  /** Plans the turns for a prompt, which it returns. */
  const plan = (prompt, ...turns) => {
    plans.set(prompt, turns);
    return prompt;
  };
  let calls = 0;

  const answer = async (request, response) => {
    let body = "";
    for await (const piece of request) body += piece;
    const turn = nextTurn(plans, JSON.parse(body).messages);
    if (turn.status) {
      response.writeHead(turn.status, { "content-type": "application/json" }).end(JSON.stringify({ error: { message: turn.say ?? "the stand-in fails" } }));
      return;
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    const send = (data) => response.write(`data: ${JSON.stringify(data)}\n\n`);
    const piece = (delta, finish_reason = null) => send({ id: "x", object: "chat.completion.chunk", model: "gpt-4.1", choices: [{ index: 0, delta, finish_reason }] });
    if (turn.think) piece({ reasoning_content: turn.think });
    for (const text of [turn.say ?? []].flat()) {
      if (text === "HOLD") await hold();
      else piece({ content: text });
    }
    const tool_calls = (turn.calls ?? []).map(({ name, args }, index) => ({ index, id: `call_${++calls}`, type: "function", function: { name, arguments: JSON.stringify(args) } }));
    if (tool_calls.length > 0) piece({ tool_calls });
    piece({}, tool_calls.length > 0 ? "tool_calls" : "stop");
    send({ id: "x", choices: [], usage: { prompt_tokens: 1200, completion_tokens: 80, total_tokens: 1280 } });
    response.end("data: [DONE]\n\n");
  };
  const listening = createServer((request, response) => void answer(request, response).catch((error) => response.destroy(error)));
  await new Promise((done) => listening.listen(0, "127.0.0.1", done));
  const url = `http://127.0.0.1:${listening.address().port}/v1`;
  const stop = () => {
    release();
    listening.closeAllConnections();
    listening.close();
  };
  return { url, plan, held, release, stop, env: { OPENAI_BASE_URL: url, OPENAI_API_KEY: "stand-in" } };
}
