// The Ask page: the answer in pieces as they arrive, with its sources.

import { element, events, Problem, percent, sayProblem } from "./kept.js";

const LONGEST = 300;
const $ = (id) => document.getElementById(id);
const form = $("ask-form");
const question = $("question");
let running = null;

const part = (node, name) => node.querySelector(`[data-part="${name}"]`);

function copied(id) {
  return document.importNode($(id).content, true).firstElementChild;
}

/** Append text to a paragraph; markers that lead to a source become links. */
function written(paragraph, text, sources) {
  paragraph.replaceChildren();
  text.split(/(\[\d+\])/).forEach((piece) => {
    const number = /^\[(\d+)\]$/.exec(piece)?.[1];
    const known = number && Number(number) >= 1 && Number(number) <= sources;
    paragraph.append(known
      ? element("a", { class: "cite", href: `#source-${number}`, "aria-label": `Source ${number}` }, number)
      : piece);
  });
}

function source(one, marker) {
  const item = copied("source-template");
  item.id = `source-${marker}`;
  item.setAttribute("aria-label", `Source ${marker}`);
  part(item, "number").textContent = marker;
  const title = part(item, "title");
  title.textContent = one.title || one.source_uri || one.document_id;
  title.href = `/documents/${encodeURIComponent(one.document_id)}#chunk-${one.ord}`;
  part(item, "uri").textContent = one.source_uri;
  part(item, "text").textContent = one.text;
  snipped(item, one.text.length > LONGEST ? `${one.text.slice(0, LONGEST)}…` : one.text, one.text);
  relevance(item.querySelector(".relevance"), one.relevance, one.rating, `relevance-${marker}`);
  return item;
}

function snipped(item, snippet, text) {
  part(item, "snippet").textContent = snippet;
  part(item, "passage").hidden = snippet === text;
}

function relevance(node, value, rating, id) {
  if (value === null) {
    node.remove();
    return;
  }
  const meter = node.querySelector("meter");
  meter.value = value;
  meter.textContent = percent(value);
  node.querySelector(".relevance-word").textContent = rating;
  node.querySelector(".relevance-value").setAttribute("aria-describedby", id);
  node.querySelector(".tip").id = id;
  node.querySelector(".tip-share").textContent = Math.round(value * 100);
}

function refused(answer) {
  const refusal = copied("refusal-template");
  part(refusal, "message").textContent = answer.text;
  const best = answer.refused?.evidence?.best_relevance;
  if (best !== undefined && best !== null) {
    part(refusal, "best").hidden = false;
    part(refusal, "share").textContent = percent(best);
  }
  $("answer-text").replaceChildren(refusal);
}

function badge(text, kind) {
  return element("span", { class: `badge ${kind}` }, text);
}

function noted(answer) {
  const notes = [];
  if (answer.kind === "extractive") notes.push(badge("Word for word from the sources", "plain"));
  if (answer.kind === "generative") {
    notes.push(badge("Written by a language model", "plain"));
    notes.push(answer.supported ? badge("Supported by the sources", "good") : badge("Not supported by the sources", "bad"));
  }
  if (answer.trace) {
    notes.push(element("a", { href: `/traces/${encodeURIComponent(answer.trace)}` }, "How this came about"));
  }
  $("answer-notes").replaceChildren(...notes);
}

function begun(asked) {
  $("nothing-yet").hidden = true;
  $("result").hidden = false;
  $("asked").textContent = asked;
  $("answer-text").replaceChildren(element("p", { class: "waiting" }, "Looking for passages …"));
  $("answer-text").setAttribute("aria-busy", "true");
  $("answer-notes").replaceChildren();
  $("source-list").replaceChildren();
  $("sources").hidden = true;
  $("stop").hidden = false;
  $("send").disabled = true;
}

function ended() {
  $("answer-text").removeAttribute("aria-busy");
  $("stop").hidden = true;
  $("send").disabled = false;
  running = null;
}

function body() {
  const given = new FormData(form);
  const json = { question: given.get("question"), stream: true };
  if (given.get("k")) json.k = Number(given.get("k"));
  if (given.get("tag")?.trim()) json.filters = { tags: [given.get("tag").trim()] };
  if (given.get("extractive")) json.extractive = true;
  return json;
}

async function asked(json) {
  running = new AbortController();
  begun(json.question);
  const paragraph = element("p", {});
  let text = "";
  let found = [];
  for await (const { name, value } of events("/v1/ask", { method: "POST", json, signal: running.signal })) {
    if (name === "found") {
      found = value.selected;
      $("source-list").replaceChildren(...found.map((one, place) => source(one, place + 1)));
      $("sources").hidden = found.length === 0;
    } else if (name === "piece") {
      text += value.text;
      written(paragraph, text, found.length);
      if (!paragraph.isConnected) $("answer-text").replaceChildren(paragraph);
    } else if (name === "problem") {
      throw new Problem(value);
    } else if (name === "answer") {
      finished(value, paragraph, found);
    }
  }
}

function finished(answer, paragraph, found) {
  if (answer.kind === "none") {
    refused(answer);
    $("sources").hidden = true;
  } else {
    written(paragraph, answer.text, found.length);
  }
  for (const one of answer.citations) {
    const item = $(`source-${one.marker}`);
    snipped(item, one.snippet, found[one.marker - 1].text);
    part(item, "uncited").hidden = one.cited;
    item.querySelector(".relevance .badge")?.toggleAttribute("hidden", !one.low_relevance);
  }
  noted(answer);
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  if (running) return;
  try {
    await asked(body());
  } catch (error) {
    if (error.name === "AbortError") $("answer-text").append(element("p", { class: "quiet" }, "Stopped."));
    else $("answer-text").replaceChildren(element("p", { class: "quiet" }, "There is no answer: something failed."));
    sayProblem(error);
  } finally {
    ended();
  }
});

$("stop").addEventListener("click", () => running?.abort());

question.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    form.requestSubmit();
  }
});

// A click on a citation leads to its source, also if it is the second one on it.
$("answer-text").addEventListener("click", (event) => {
  const link = event.target.closest("a.cite");
  const item = link && document.querySelector(link.getAttribute("href"));
  if (!item) return;
  event.preventDefault();
  document.querySelector(".source.lit")?.classList.remove("lit");
  item.classList.add("lit");
  item.scrollIntoView({ block: "center" });
  item.focus({ preventScroll: true });
});
