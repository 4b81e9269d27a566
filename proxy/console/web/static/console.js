// Live validation of a form: its fields are sent when they have changed, and the parts that come back take their places.
// Without this script the pages do the same by their buttons.
"use strict";

for (const form of document.querySelectorAll("form[data-check]")) {
  let timer = 0;
  let latest = 0;
  const check = async () => {
    const number = ++latest;
    const body = new URLSearchParams(new FormData(form));
    const answer = await fetch(form.dataset.check, { method: "POST", body, redirect: "error" });
    const text = await answer.text();
    if (number !== latest || !answer.ok) {
      return;
    }
    const parts = new DOMParser().parseFromString(text, "text/html");
    for (const part of parts.querySelectorAll("[data-part]")) {
      const place = document.getElementById(part.dataset.part);
      if (place) {
        place.replaceChildren(...part.childNodes);
      }
    }
    const wrong = new Set(Array.from(parts.querySelectorAll("[data-wrong]"), (each) => each.dataset.wrong));
    for (const field of form.elements) {
      if (field.name && field.type !== "hidden") {
        field.setAttribute("aria-invalid", wrong.has(field.name) ? "true" : "false");
      }
    }
  };
  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(check, 300);
  });
}
