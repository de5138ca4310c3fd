// Searches the runs of the list by all words that are typed.
(function () {
  "use strict";
  const search = document.getElementById("search");
  const found = document.getElementById("found");
  const rows = Array.from(document.querySelectorAll("#runs > li"), (row) => ({
    row: row,
    text: row.textContent.toLowerCase(),
  }));

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

  search.addEventListener("input", choose);
  choose();
})();
