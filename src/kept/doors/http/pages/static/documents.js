// The pages of documents: dropped files, and jobs whose progress is followed.

import { call, count, events, say, sayProblem } from "./kept.js";

const $ = (id) => document.getElementById(id);
const part = (node, name) => node.querySelector(`[data-part="${name}"]`);
const KINDS = { done: "good", running: "accent", failed: "bad", cancelled: "warn" };

function tags(form) {
  return (form.elements.tags?.value ?? "").split(",").map((tag) => tag.trim()).filter(Boolean);
}

/** Show a job above the others, before the service has accepted it. */
function announced(name) {
  const item = document.importNode($("job-template").content, true).firstElementChild;
  part(item, "name").textContent = name;
  part(item, "state").textContent = "sending";
  part(item, "summary").textContent = "";
  part(item, "progress").removeAttribute("value");
  part(item, "cancel").hidden = true;
  $("jobs").hidden = false;
  $("job-list").prepend(item);
  return item;
}

function moved(item, job) {
  const ended = ["done", "failed", "cancelled"].includes(job.state);
  item.dataset.state = job.state;
  const state = part(item, "state");
  state.textContent = job.cancelling ? "stopping" : job.state;
  state.className = `badge ${ended && job.counts.failed ? "warn" : KINDS[job.state] ?? "plain"}`;
  const progress = part(item, "progress");
  progress.hidden = ended;
  progress.max = Math.max(job.sources, 1);
  // A table gives a receipt for each row, so their number is unknown.
  if (job.done < job.sources) progress.value = job.done;
  else progress.removeAttribute("value");
  const counts = Object.entries(job.counts).map(([name, number]) => `${number} ${name}`);
  part(item, "summary").textContent = job.error || counts.join(", ") || count(job.sources, "source");
  const cancel = part(item, "cancel");
  if (cancel) cancel.hidden = ended || job.cancelling;
  return ended;
}

function named(item, id) {
  item.dataset.job = id;
  part(item, "name").href = `/documents/jobs/${id}`;
  const form = part(item, "cancel")?.form;
  if (form) form.action = `/documents/jobs/${id}/cancel`;
}

/** Follow a job to its end, then reload the list. */
async function followed(item) {
  try {
    for await (const { value } of events(`/v1/jobs/${item.dataset.job}/events`)) {
      if (moved(item, value)) await ended(item, value);
    }
  } catch (error) {
    sayProblem(error);
  }
}

async function ended(item, job) {
  const failed = job.state === "failed" || job.counts.failed;
  const summary = Object.entries(job.counts).map(([name, number]) => `${number} ${name}`).join(", ");
  const name = part(item, "name").textContent.trim();
  say(`${name}: ${job.error || summary || job.state}`, failed ? "bad" : "done");
  const response = await fetch(location.href, { headers: { accept: "text/html" } });
  if (!response.ok) return;
  const fresh = new DOMParser().parseFromString(await response.text(), "text/html").getElementById("list");
  if (fresh) $("list").replaceWith(document.adoptNode(fresh));
}

/** Submit a form; it is cleared only when the job was accepted. */
async function handedIn(name, form, send) {
  const item = announced(name);
  try {
    const job = await send();
    form.reset();
    named(item, job.job_id);
    if (moved(item, job)) await ended(item, job);
    else await followed(item);
  } catch (error) {
    item.remove();
    $("jobs").hidden = !$("job-list").children.length;
    sayProblem(error);
  }
}

function uploaded(files) {
  const form = $("files-form");
  const most = Number($("files").dataset.most);
  const bytes = [...files].reduce((sum, file) => sum + file.size, 0);
  if (bytes > most) {
    say(`These files have ${count(bytes, "byte")}, at most ${count(most, "byte")} are taken at once; send fewer.`, "bad");
    return null;
  }
  const body = new FormData();
  for (const file of files) body.append("files", file, file.name);
  const given = tags(form);
  if (given.length) body.append("fields", JSON.stringify({ tags: given }));
  const some = [...files].slice(0, 3).map((file) => file.name).join(", ");
  const more = files.length > 3 ? ` and ${files.length - 3} more` : "";
  return handedIn(some + more, form, () => call("/v1/documents/files", { method: "POST", body }));
}

function dropping(zone) {
  let depth = 0;
  const carriesFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  zone.classList.add("enhanced");
  zone.addEventListener("dragenter", (event) => {
    if (!carriesFiles(event)) return;
    depth += 1;
    zone.classList.add("over");
  });
  zone.addEventListener("dragleave", () => {
    depth = Math.max(0, depth - 1);
    if (!depth) zone.classList.remove("over");
  });
  zone.addEventListener("dragover", (event) => { if (carriesFiles(event)) event.preventDefault(); });
  zone.addEventListener("drop", (event) => {
    depth = 0;
    zone.classList.remove("over");
    if (!event.dataTransfer.files.length) return;
    event.preventDefault();
    uploaded(event.dataTransfer.files);
  });
  zone.addEventListener("submit", (event) => {
    event.preventDefault();
    uploaded([...$("files").files]);
  });
}

function sentAsJson(form, documentOf, nameOf) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const given = documentOf(form);
    handedIn(nameOf(given), form, () => call("/v1/documents", { method: "POST", json: { documents: [given] } }));
  });
}

if ($("files-form")) {
  dropping($("files-form"));
  sentAsJson($("text-form"), (form) => ({
    text: form.elements.text.value,
    tags: tags(form),
    ...(form.elements.title.value.trim() && { title: form.elements.title.value.trim() }),
  }), (given) => given.title || "A text");
  sentAsJson($("url-form"), (form) => ({ url: form.elements.url.value.trim() }), (given) => given.url);
}

$("job-list")?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const item = event.target.closest("[data-job]");
  try {
    moved(item, await call(`/v1/jobs/${item.dataset.job}/cancel`, { method: "POST" }));
  } catch (error) {
    sayProblem(error);
  }
});

for (const item of document.querySelectorAll("[data-job]")) {
  if (["queued", "running"].includes(item.dataset.state)) followed(item);
}
