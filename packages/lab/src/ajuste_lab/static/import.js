// A bundle that a person chooses goes to the lab page, which checks it; what came of it is said above the list.
(function () {
  "use strict";
  const input = document.getElementById("import"), said = document.getElementById("import-said");
  const counted = (count, what) => `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;

  function tell(className, role, lines) {
    const box = document.createElement("div");
    box.className = className;
    if (role) box.setAttribute("role", role);
    lines.forEach((parts) => {
      const line = document.createElement("p");
      line.append(...parts);
      box.append(line);
    });
    said.replaceChildren(box);
  }

  function refuse(message, hint) {
    const sentence = (text) => text && text[0].toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".");
    tell("warnings wrong", "alert", [["Nothing was imported: " + message + ". " + sentence(hint || "")]]);
  }

  function lineOf(run) {
    const link = document.createElement("a");
    link.href = "/runs/" + encodeURIComponent(run.id);
    link.textContent = run.study;
    const anew = run.new && run.said_anew ? ` Some of its results do not follow from its trials with this Ajuste, and were computed again: ${run.different.join(", ").replaceAll("_", " ")}.` : "";
    return [link, `, ${counted(run.trials, "trial")}: ${run.new ? "imported" : "it was here already"}.${anew}`];
  }

  // The list as it is now, without what is being read on the page.
  async function refresh() {
    const answer = await fetch(location.href);
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("runs");
    if (fresh) document.getElementById("runs").replaceWith(fresh);
  }

  input.addEventListener("change", async () => {
    const file = input.files[0], largest = Number(input.dataset.largest);
    if (!file) return;
    if (file.size > largest) {
      refuse(`${file.name} is too large for the lab page; expected at most ${largest / 2 ** 20} MiB`, "import it in a terminal: ajuste import FILE");
      input.value = "";
      return;
    }
    input.disabled = true;
    input.parentElement.setAttribute("aria-busy", "true");
    tell("notice", "", [[`Checking ${file.name}…`]]);
    try {
      const headers = { accept: "application/json", "content-type": "application/octet-stream" };
      const answer = await fetch("/import?name=" + encodeURIComponent(file.name), { method: "POST", headers, body: file });
      const found = await answer.json();
      if (answer.ok) {
        await refresh();
        tell("notice", "", found.runs.slice(0, 20).map(lineOf).concat(found.runs.length > 20 ? [[`And ${found.runs.length - 20} more.`]] : []));
      } else {
        refuse(found.error, found.hint);
      }
    } catch (error) {
      refuse(`the lab page does not answer (${error.message})`, "see whether ajuste serve still runs");
    }
    input.disabled = false;
    input.parentElement.removeAttribute("aria-busy");
    input.value = "";
  });
})();
