// A new key is copied with one press, where the browser allows it.

import { say } from "./kept.js";

for (const button of document.querySelectorAll("[data-copy]")) {
  const field = document.getElementById(button.dataset.copy);
  field.addEventListener("focus", () => field.select());
  if (!navigator.clipboard) continue;
  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(field.value);
      say("Copied.");
    } catch {
      field.focus();
      say("The browser did not allow it; copy the marked text.", "warn");
    }
  });
}
