"use strict";
const tip = document.getElementById("tip");

// Shows the title of the mark under the pointer, at once and on touch screens too.
document.addEventListener("pointerover", (event) => {
  const mark = event.target.closest("g.mark");
  tip.hidden = !mark;
  if (!mark) return;
  const title = mark.querySelector("title");
  if (title) {
    mark.dataset.words = title.textContent;
    title.remove(); // the browser would show it a second time
  }
  tip.textContent = mark.dataset.words;
  const place = mark.getBoundingClientRect();
  const left = Math.min(place.right + 8, document.documentElement.clientWidth - tip.offsetWidth - 8);
  tip.style.left = `${Math.max(8, left) + window.scrollX}px`;
  tip.style.top = `${place.bottom + 8 + window.scrollY}px`;
});
