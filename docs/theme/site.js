// Theme: light, dark or the system setting. Runs before the first paint.
(() => {
  const root = document.documentElement;
  const modes = ["auto", "light", "dark"];

  const stored = () => {
    try {
      return localStorage.getItem("kept-theme");
    } catch {
      return null; // Browsers may deny storage to pages opened from a folder.
    }
  };

  const use = (mode) => {
    if (mode === "auto") delete root.dataset.theme;
    else root.dataset.theme = mode;
  };

  let mode = modes.includes(stored()) ? stored() : "auto";
  use(mode);

  document.addEventListener("DOMContentLoaded", () => {
    const button = document.querySelector("button.theme");
    const rail = document.querySelector("details.rail");
    const label = button.querySelector("span");
    label.textContent = mode;
    button.hidden = false;
    button.addEventListener("click", () => {
      mode = modes[(modes.indexOf(mode) + 1) % modes.length];
      use(mode);
      label.textContent = mode;
      try {
        localStorage.setItem("kept-theme", mode);
      } catch {
        // Then the choice lasts until the page is closed.
      }
    });

    const narrow = matchMedia("(max-width: 56rem)");
    const fold = () => { rail.open = !narrow.matches; };
    fold();
    narrow.addEventListener("change", fold);
    rail.querySelector("[aria-current]")?.scrollIntoView({ block: "center" });
    scrollTo(0, location.hash ? scrollY : 0);
  });
})();
