// What all pages of the lab share: choices that apply at once, parts that load later, and pages that wait.
(function () {
  "use strict";

  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-submits]")) event.target.form.requestSubmit();
  });

  // A part that takes the server a second or more: the rest of the page is there before.
  document.querySelectorAll("[data-load]").forEach(async (place) => {
    const said = place.querySelector("p");
    said.textContent = place.dataset.waiting || "Asking this machine…";
    try {
      const answer = await fetch(place.dataset.load);
      if (!answer.ok) throw new Error(answer.statusText);
      place.replaceChildren(...new DOMParser().parseFromString(await answer.text(), "text/html").body.childNodes);
    } catch (error) {
      said.textContent = "It could not be loaded: " + error.message;
    }
  });

  document.querySelectorAll("[data-reload]").forEach((place) =>
    setTimeout(() => location.reload(), 1000 * Number(place.dataset.reload))
  );

  // A run that starts: to its page, once it has one.
  const job = document.getElementById("job");
  if (job) {
    const said = document.getElementById("job-doing");
    const look = async () => {
      try {
        const state = await (await fetch("/jobs/" + job.dataset.job + "/state")).json();
        if (state.run || !state.alive) {
          location.reload();
          return;
        }
        if (state.doing) said.textContent = state.doing[0].toUpperCase() + state.doing.slice(1) + "…";
      } catch (error) {
        said.textContent = "The lab page does not answer.";
      }
      setTimeout(look, 500);
    };
    look();
  }

  // A row more of a form, until all are shown.
  document.querySelectorAll("[data-further]").forEach((button) => {
    const hidden = () => button.closest("fieldset").querySelector("." + button.dataset.further + ".further:not(.shown)");
    button.addEventListener("click", () => {
      const row = hidden();
      row.classList.add("shown");
      row.querySelector("input").focus();
      if (!hidden()) button.parentElement.remove();
    });
  });

  // Slash searches, as on many sites; not while somebody writes.
  document.addEventListener("keydown", (event) => {
    const search = document.querySelector("input[type=search]");
    const writes = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName);
    if (event.key === "/" && search && !writes && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      search.focus();
    }
  });
})();
