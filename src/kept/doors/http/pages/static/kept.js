// Shared by the scripts of all pages: calls to the API, events, and notices.

const meta = (name) => document.querySelector(`meta[name="${name}"]`)?.content ?? "";

// A header holds bytes, so a name in any script is sent in UTF-8.
const tenant = String.fromCharCode(...new TextEncoder().encode(meta("kept-tenant")));

/** A problem that the service returned. */
export class Problem extends Error {
  constructor(problem) {
    super(problem.detail || problem.title);
    this.title = problem.title;
    this.code = problem.code;
    this.status = problem.status;
  }
}

/** Build an element: element("p", { class: "lead" }, "text", node). Text is never markup. */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.flat().filter((c) => c !== null && c !== undefined && c !== false));
  return made;
}

/** Show a notice; kinds: done, warn, bad, plain. Only a fault stays until it is closed. */
export function say(text, kind = "done") {
  const region = document.getElementById("notices");
  const close = element("button", { type: "button", "aria-label": "Close", onclick: () => note.remove() }, "×");
  const note = element("div", { class: `notice ${kind}`, role: kind === "bad" ? "alert" : null },
    element("p", {}, text), close);
  region.append(note);
  if (kind !== "bad") setTimeout(() => note.remove(), 6000);
}

/** Show an error as a notice. */
export function sayProblem(error) {
  if (error.name === "AbortError") return;
  const known = error instanceof Problem;
  if (known && error.status === 401) {
    location.assign(`/sign-in?next=${encodeURIComponent(location.pathname + location.search)}`);
    return;
  }
  say(known ? `${error.title}: ${error.message}` : "The service cannot be reached. Is it still running?", "bad");
}

async function response(path, { method = "GET", json, body, headers = {}, signal } = {}) {
  const sent = new Headers({ accept: "application/json", ...headers });
  if (method !== "GET") sent.set("x-csrf-token", meta("kept-csrf"));
  if (tenant) sent.set("kept-tenant", tenant);
  if (json !== undefined) {
    sent.set("content-type", "application/json");
    body = JSON.stringify(json);
  }
  const answer = await fetch(path, { method, body, headers: sent, signal, credentials: "same-origin" });
  if (answer.ok) return answer;
  let problem = { title: "The service failed", detail: `status ${answer.status}`, status: answer.status };
  if ((answer.headers.get("content-type") ?? "").includes("json")) problem = await answer.json();
  throw new Problem(problem);
}

/** Call the API and return its JSON. Options: method, json, body, headers, signal. */
export async function call(path, options = {}) {
  const answer = await response(path, options);
  return answer.status === 204 ? null : answer.json();
}

/** Yield { name, value } for every server-sent event of a response. */
export async function* events(path, options = {}) {
  const answer = await response(path, { ...options, headers: { accept: "text/event-stream" } });
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const blocks = (rest + value).split("\n\n");
      rest = blocks.pop();
      for (const block of blocks) {
        const event = parsed(block);
        if (event) yield event;
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

function parsed(block) {
  let name = "message";
  const data = [];
  for (const line of block.split("\n")) {
    if (line.startsWith("event: ")) name = line.slice(7);
    else if (line.startsWith("data: ")) data.push(line.slice(6));
  }
  return data.length ? { name, value: JSON.parse(data.join("\n")) } : null;
}

/** A share as whole percents; 0 % and 100 % only where they are exact. */
export function percent(value) {
  const whole = Math.round(value * 100);
  if (value > 0 && whole === 0) return "<1\u202f%";
  if (value < 1 && whole === 100) return ">99\u202f%";
  return `${whole}\u202f%`;
}

/** A number with its noun. */
export function count(number, one, many = `${one}s`) {
  return `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
}
