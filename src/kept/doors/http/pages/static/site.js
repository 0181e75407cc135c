// On every page: the appearance without a reload, tooltips that can be closed.

const THEMES = ["system", "light", "dark"];
const YEAR = 365 * 24 * 3600;

for (const button of document.querySelectorAll("[data-theme-switch]")) {
  button.addEventListener("click", (event) => {
    event.preventDefault();
    const theme = THEMES[(THEMES.indexOf(button.dataset.themeSwitch) + 1) % THEMES.length];
    button.dataset.themeSwitch = theme;
    button.querySelector("span").textContent = `Appearance: ${theme}`;
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    document.cookie = `kept_theme=${theme}; path=/; max-age=${YEAR}; samesite=strict`;
  });
}

// Some browsers do not focus a clicked button, and the tooltip depends on focus.
document.addEventListener("click", (event) => {
  event.target.closest?.(".relevance-value")?.focus();
});

document.addEventListener("keydown", (event) => {
  const focused = document.activeElement;
  if (event.key === "Escape" && focused?.classList.contains("relevance-value")) focused.blur();
});

// A form that was sent is not sent twice.
document.addEventListener("submit", (event) => {
  const button = event.submitter;
  if (!button || event.defaultPrevented || event.target.method !== "post") return;
  setTimeout(() => { button.disabled = true; }, 0);
  addEventListener("pageshow", () => { button.disabled = false; }, { once: true });
});
