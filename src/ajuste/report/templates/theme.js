// Sets the theme before the page is drawn, so that it does not flash in the other one, and has the button switch it.
// Whoever draws in its colours hears of a change by the document's event "recolour".
(function () {
  "use strict";
  const root = document.documentElement;
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  root.classList.add("js");
  try {
    const chosen = localStorage.getItem("ajuste-theme");
    if (chosen === "light" || chosen === "dark") root.dataset.theme = chosen;
  } catch (error) {
    // Storage can be off for files; the system's theme is used then.
  }

  function isDark() {
    return root.dataset.theme ? root.dataset.theme === "dark" : dark.matches;
  }

  function show() {
    const button = document.getElementById("theme");
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", "Switch to " + (isDark() ? "light" : "dark") + " colours");
  }

  function changed() {
    show();
    document.dispatchEvent(new Event("recolour"));
  }

  document.addEventListener("DOMContentLoaded", () => {
    show();
    dark.addEventListener("change", changed);
    document.getElementById("theme").addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      try {
        localStorage.setItem("ajuste-theme", root.dataset.theme);
      } catch (error) {
        // Not remembered, but it works for this page.
      }
      changed();
    });
  });
})();
