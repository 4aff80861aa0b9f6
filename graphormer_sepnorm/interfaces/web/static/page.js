// The drawing, the picture of a molecule, and what a screen reader is told. Everything else on the page is HTML and htmx.

const form = document.getElementById("molecules");
const said = document.getElementById("said");
const AFTER_LAST_KEY = 500; // milliseconds until the molecule is drawn
const MOST_CHARACTERS = 1_000_000; // of a text, which the server reads
const MOST_DRAWN = 300; // characters of a SMILES, as the editor holds up the page for large molecules

// Back, pressed while a page loads, changes the address before htmx listens.
const loaded = performance.getEntriesByType("navigation")[0]?.name;
if (loaded && loaded.split("#")[0] !== location.href.split("#")[0]) location.reload();

// Above the predictions, which stay; a problem of the connection is gone with the next answer.
function showProblem(text, kind = "") {
  const shown = document.querySelector("#result > .problem");
  if (shown?.textContent === text) return;
  shown?.remove();
  const problem = document.createElement("p");
  problem.className = `problem ${kind}`;
  problem.setAttribute("role", "alert");
  problem.textContent = text;
  document.getElementById("result").prepend(problem);
}

if (form) {
  const text = document.getElementById("text");
  const file = document.getElementById("file");
  const removeFile = document.getElementById("clear-file");
  const what = document.getElementById("what");

  const describe = () => {
    removeFile.hidden = !file.files.length;
    what.textContent = file.files.length ? `Predicts ${file.files[0].name}.` : "";
  };
  file.addEventListener("change", describe);
  removeFile.addEventListener("click", () => {
    file.value = "";
    describe();
    file.focus();
  });

  const example = document.getElementById("example");
  example.hidden = false;
  example.addEventListener("click", () => {
    text.value = "CC(=O)Oc1ccccc1C(=O)O aspirin\nCN1C=NC2=C1C(=O)N(C(=O)N2C)C caffeine\nCC(C)Cc1ccc(cc1)C(C)C(=O)O ibuprofen";
    text.focus();
  });

  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });

  form.addEventListener("submit", (event) => {
    const problem = problemOf(file.files[0], text.value);
    if (!problem && !document.getElementById("predict").disabled) return; // by htmx, until the answer comes
    event.preventDefault();
    event.stopImmediatePropagation();
    if (problem) showProblem(problem);
  }, { capture: true });

  drawInto(document.getElementById("editor"), text);
}

function problemOf(file, text) {
  const most = Number(form.dataset.mostBytes);
  if (file) return file.size > most ? `${file.name} is too large: at most ${most / 1e6} MB are read.` : "";
  if (text.length > MOST_CHARACTERS) return "The text is too long: save it in a file, and upload the file.";
  return text.trim() ? "" : "There are no molecules: draw one, type or paste some SMILES, or choose a file.";
}

async function drawInto(place, text) {
  const { CanvasEditor, Molecule } = await import("./vendor/openchemlib.js");
  const editor = new CanvasEditor(place, { initialMode: "molecule" });
  let drawn = "";
  editor.setOnChangeListener(({ type, isUserEvent }) => {
    if (type !== "molecule" || !isUserEvent) return;
    const before = drawn;
    drawn = editor.getMolecule().toIsomericSmiles();
    const lines = text.value.trimEnd().split("\n");
    if (lines.length > 1) text.value = [...lines.at(-1) === before ? lines.slice(0, -1) : lines, drawn].join("\n");
    else text.value = drawn;
  });
  const draw = () => {
    const [smiles] = text.value.trim().split(/\s+/, 1);
    if (smiles.length > MOST_DRAWN || text.value.trim().includes("\n") || smiles === drawn) return;
    try {
      editor.setMolecule(Molecule.fromSmiles(smiles));
      drawn = smiles;
    } catch {
      // What the editor cannot read may still be predicted.
    }
  };
  let soon = 0;
  text.addEventListener("input", () => {
    clearTimeout(soon);
    soon = setTimeout(draw, AFTER_LAST_KEY);
  });
  text.addEventListener("change", draw);
  place.dataset.ready = "true";
}

document.addEventListener("keydown", (event) => {
  if (event.key === " " && event.target.matches?.("a[role=button]")) {
    event.preventDefault();
    event.target.click();
  }
});

// Below a molecule comes its atom picture, or the reason why there is none, when it is computed.
const asksForPicture = (source) => source?.matches?.(".atoms, #atoms form");
const sayOfPicture = (text) => {
  document.getElementById("drawing").textContent = text;
};

document.addEventListener("htmx:before:request", (event) => {
  if (asksForPicture(event.detail?.ctx?.sourceElement)) sayOfPicture("Computing the atom picture...");
});

document.addEventListener("error", ({ target }) => {
  if (!target.matches?.("#rows img, .card img, #atoms img")) return;
  const note = document.createElement("small");
  note.textContent = "No picture: the molecule is too large, or the server did not answer.";
  target.replaceWith(note);
}, { capture: true });

document.addEventListener("htmx:after:swap", () => {
  document.querySelector("#result > .lost")?.remove();
  const say = document.querySelector("[data-say]")?.dataset.say ?? said.textContent;
  if (said.textContent !== say) said.textContent = say;
});

// Where the focus goes: to the result of a form, to a picture, to the page of a table.
document.addEventListener("htmx:after:request", (event) => {
  const source = event.detail?.ctx?.sourceElement;
  if (!source) return;
  if (source === form) focusSoon("#table-title, #result .problem");
  if (source.matches("thead a, .pager a")) {
    document.getElementById("rows").scrollIntoView();
    focusSoon("#rows .wide");
  }
  if (asksForPicture(source)) {
    sayOfPicture("");
    if (source.matches(".atoms")) focusSoon("#atoms-title, #atoms .problem");
  }
});

document.addEventListener("htmx:error", (event) => {
  const source = event.detail?.ctx?.sourceElement, words = "The server did not answer: it may have been closed";
  if (asksForPicture(source)) sayOfPicture(`${words}.`);
  else showProblem(`${words}${source === form ? ", or the file is too large" : ""}.`, "lost");
});

function focusSoon(selector) {
  setTimeout(() => document.querySelector(selector)?.focus(), 50);
}
