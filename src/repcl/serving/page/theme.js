/** Light or dark: what the system says, until someone chooses here. */

const KEPT_AS = "repcl-theme";
const systemIsDark = matchMedia("(prefers-color-scheme: dark)");

apply(chosen());

/**
 * Let a button switch between light and dark.
 * @param {HTMLElement} button
 */
export function bindThemeButton(button) {
  const show = () => button.setAttribute("aria-pressed", String(isDark()));
  button.addEventListener("click", () => {
    choose(isDark() ? "light" : "dark");
    show();
  });
  systemIsDark.addEventListener("change", show);
  show();
}

function isDark() {
  const theme = document.documentElement.dataset.theme;
  return theme ? theme === "dark" : systemIsDark.matches;
}

/** @param {"light" | "dark"} theme */
function choose(theme) {
  const isSystems = (theme === "dark") === systemIsDark.matches;
  apply(isSystems ? null : theme);
  try {
    if (isSystems) localStorage.removeItem(KEPT_AS);
    else localStorage.setItem(KEPT_AS, theme);
  } catch {
    // a browser may forbid storage; the choice then lasts as long as the page
  }
}

/** @param {string | null} theme */
function apply(theme) {
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
}

function chosen() {
  try {
    return localStorage.getItem(KEPT_AS);
  } catch {
    return null;
  }
}
