// Light, dark, or as the system has it: decided before anything is drawn.
(() => {
  const root = document.documentElement;
  const modes = ["auto", "light", "dark"];

  const stored = () => {
    try {
      return localStorage.getItem("kept-theme");
    } catch {
      return null; // A browser may refuse storage to pages from a folder.
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
    const told = button.querySelector("span");
    told.textContent = mode;
    button.hidden = false;
    button.addEventListener("click", () => {
      mode = modes[(modes.indexOf(mode) + 1) % modes.length];
      use(mode);
      told.textContent = mode;
      try {
        localStorage.setItem("kept-theme", mode);
      } catch {
        // It lasts as long as the page, then.
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
