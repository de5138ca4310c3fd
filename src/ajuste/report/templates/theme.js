// Runs before the page is drawn, so that it does not flash in the other theme.
(function () {
  "use strict";
  const root = document.documentElement;
  root.classList.add("js");
  try {
    const chosen = localStorage.getItem("ajuste-theme");
    if (chosen === "light" || chosen === "dark") root.dataset.theme = chosen;
  } catch (error) {
    // Storage can be off for files; the system's theme is used then.
  }
})();
