// A slider for the field: when it stops, the form is sent and the preview replaced.

import { sayProblem } from "./kept.js";

const form = document.getElementById("trial-form");
const slider = document.getElementById("slider");
const field = document.getElementById("value");
const setting = document.getElementById("setting");
const PAUSE = 350;

setting?.addEventListener("change", () => setting.form.requestSubmit());

if (form) {
  slider.hidden = false;
  let timer, running;

  const line = () => {
    for (const mark of document.querySelectorAll(".plot .mark.trial")) mark.remove();
    const names = { relevance_floor: 0 };
    const plot = document.querySelectorAll("#scores ~ .plots .plot")[names[setting.value]];
    const now = plot?.querySelector(".mark");
    if (!now || !(slider.max === "1.0" || slider.max === "1") || Number(slider.min) > 0) return;
    const trial = now.cloneNode();
    trial.classList.add("trial");
    const [left, right] = [64, 624];
    for (const side of ["x1", "x2"]) trial.setAttribute(side, left + Number(field.value) * (right - left));
    now.after(trial);
  };

  const preview = async () => {
    running?.abort();
    running = new AbortController();
    const region = document.getElementById("preview");
    region.setAttribute("aria-busy", "true");
    const sent = new FormData(form);
    sent.set("part", "preview");
    try {
      const answer = await fetch(form.action, {
        method: "POST", body: sent, signal: running.signal,
        headers: { accept: "text/html" }, credentials: "same-origin",
      });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const shown = page.getElementById("preview");
      if (!shown) throw new Error(`status ${answer.status}`);
      region.replaceChildren(...document.adoptNode(shown).childNodes);
    } catch (error) {
      sayProblem(error);
    }
    region.removeAttribute("aria-busy");
  };

  const later = () => { clearTimeout(timer); timer = setTimeout(preview, PAUSE); };

  slider.addEventListener("input", () => { field.value = slider.value; line(); later(); });
  field.addEventListener("input", () => { slider.value = field.value; line(); });
  form.addEventListener("submit", (event) => {
    if (event.submitter?.formAction.endsWith("/thresholds/save")) return;
    event.preventDefault();
    clearTimeout(timer);
    preview();
  });
  line();
}
