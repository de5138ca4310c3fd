// Searches the runs of the list by all words that are typed, and switches the theme.
(function () {
  "use strict";
  const root = document.documentElement;
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const button = document.getElementById("theme");
  const search = document.getElementById("search");
  const found = document.getElementById("found");
  const rows = Array.from(document.querySelectorAll("#runs > li"), (row) => ({
    row: row,
    text: row.textContent.toLowerCase(),
  }));

  function isDark() {
    return root.dataset.theme ? root.dataset.theme === "dark" : dark.matches;
  }

  function showTheme() {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", "Switch to " + (isDark() ? "light" : "dark") + " colours");
  }

  function choose() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    rows.forEach((one) => {
      const shown = words.every((word) => one.text.includes(word));
      one.row.hidden = !shown;
      count += shown ? 1 : 0;
    });
    found.textContent = words.length ? count + " of " + rows.length : "";
  }

  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try {
      localStorage.setItem("ajuste-theme", root.dataset.theme);
    } catch (error) {
      // Not remembered, but it works for this page.
    }
    showTheme();
  });
  dark.addEventListener("change", showTheme);
  search.addEventListener("input", choose);
  showTheme();
  choose();
})();
