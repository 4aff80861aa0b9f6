"use strict";
const tip = document.getElementById("tip");
const packed = document.getElementById("structures");
let structures = {}; // drawings by the SMILES among the words of a mark
if (packed && window.DecompressionStream) {
  const bytes = Uint8Array.from(atob(packed.textContent), (each) => each.charCodeAt(0));
  const content = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  new Response(content).json().then((found) => { structures = found; });
}
const asAddress = (svg) => `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;

// Shows the title of a mark, and the structure that it names, at once and on touch screens too.
function show(mark) {
  tip.hidden = !mark;
  if (!mark) return;
  const title = mark.querySelector("title");
  if (title) {
    mark.dataset.words = title.textContent;
    title.remove(); // the browser would show it a second time
  }
  tip.textContent = mark.dataset.words;
  const smiles = mark.dataset.words.split("\n").find((line) => Object.hasOwn(structures, line));
  if (smiles) {
    const picture = new Image(240, 180);
    picture.alt = "";
    picture.src = asAddress(structures[smiles]);
    tip.prepend(picture);
  }
  const place = mark.getBoundingClientRect(), page = document.documentElement;
  const left = Math.min(place.right + 8, page.clientWidth - tip.offsetWidth - 8);
  const above = place.top - tip.offsetHeight - 8;
  const top = place.bottom + 8 + tip.offsetHeight > page.clientHeight && above > 0 ? above : place.bottom + 8;
  tip.style.left = `${Math.max(8, left) + window.scrollX}px`;
  tip.style.top = `${top + window.scrollY}px`;
}
document.addEventListener("pointerover", (event) => show(event.target.closest("g.mark")));
document.addEventListener("focusin", (event) => show(event.target.closest("g.mark")));

// The arrow keys go through the marks of a chart from left to right.
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") tip.hidden = true;
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key], svg = event.target.closest("figure svg");
  if (!step || !svg) return;
  const across = (mark) => mark.getBoundingClientRect().left;
  const marks = [...svg.querySelectorAll("g.mark")].sort((one, other) => across(one) - across(other));
  const place = marks.indexOf(event.target), next = marks[place < 0 ? (step > 0 ? 0 : marks.length - 1) : place + step];
  if (!next) return;
  event.preventDefault();
  next.tabIndex = -1;
  next.focus();
});

// A chart as a file, with the colours that it has on the page.
const STYLES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "fill-opacity", "stroke-opacity", "font"];
function styled(svg) {
  const copy = svg.cloneNode(true), { width, height } = svg.viewBox.baseVal;
  const originals = svg.querySelectorAll("*");
  copy.querySelectorAll("*").forEach((each, place) => {
    const style = getComputedStyle(originals[place]);
    for (const name of STYLES) each.style.setProperty(name, style.getPropertyValue(name));
  });
  const paper = document.createElementNS(svg.namespaceURI, "rect");
  const settings = { width, height, fill: getComputedStyle(document.body).backgroundColor };
  for (const [name, value] of Object.entries(settings)) paper.setAttribute(name, value);
  copy.prepend(paper);
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  return new XMLSerializer().serializeToString(copy);
}
function download(content, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
function save(svg, kind) {
  const text = styled(svg), name = `${svg.getAttribute("aria-label").replace(/[^\w.-]+/g, "-")}.${kind}`;
  if (kind === "svg") return download(new Blob([text], { type: "image/svg+xml" }), name);
  const picture = new Image(), canvas = document.createElement("canvas"), scale = 3;
  picture.onload = () => {
    canvas.width = scale * picture.width;
    canvas.height = scale * picture.height;
    canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((content) => download(content, name));
  };
  picture.src = asAddress(text);
}
for (const svg of document.querySelectorAll("figure > svg")) {
  if (svg.querySelector("g.mark")) svg.tabIndex = 0;
  const buttons = document.createElement("div");
  buttons.className = "save";
  for (const kind of ["svg", "png"]) {
    const button = document.createElement("button");
    button.textContent = kind.toUpperCase();
    button.title = `Save this chart as ${button.textContent}`;
    button.addEventListener("click", () => save(svg, kind));
    buttons.append(button);
  }
  svg.after(buttons);
}
