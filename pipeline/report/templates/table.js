// The table of all variants: sort by a heading, search by words, filter by outcome; 100 rows at a time.
"use strict";
(() => {
  const STEP = 100;
  const element = (name, text = "", kind = "") => Object.assign(document.createElement(name), { textContent: text, className: kind });
  const shown = page.variants.shown;
  const table = document.getElementById("variants-table");
  const search = document.getElementById("variants-search");
  const outcome = document.getElementById("variants-outcome");
  const texts = Array.from({ length: page.variants.rows }, (_, row) =>
    ["kernel", "workload", "hardware", "implementation", "configuration", "outcome", "reason", "variant"].map((name) => columns[name][row] ?? "").concat((columns.findings[row] ?? []).map((place) => page.variants.findings[place].code)).join(" ").toLowerCase());
  const best = new Set(winnerRows());
  const state = { sort: null, up: true, limit: STEP };

  const WRITE = {
    seconds, count: (value) => value.toLocaleString("en"), text: String, code: String, outcome: String,
    share: (value) => `${digits(100 * value)} %`, estimate: (value) => `${digits(100 * value)} %`, speedup: (value) => `${digits(value)}×`,
  };

  function cell({ name, kind }, row) {
    const value = columns[name][row];
    const cellKind = { text: "", code: "code", outcome: "outcome-cell", estimate: "number estimate" }[kind] ?? "number";
    const made = element("td", "", cellKind);
    if (kind === "outcome") return outcomeCell(made, row);
    if (value === null) return Object.assign(made, { textContent: "–", className: `${cellKind} quiet` });
    if (kind === "findings") return findingsCell(made, value);
    if (kind === "speedup") {
      const verdict = columns[`verdict.${name.replace("speedup.", "")}`][row];
      made.classList.add("verdict", verdict);
      made.title = `${verdict}: ${digits(columns[`${name}.low`][row])} – ${digits(columns[`${name}.high`][row])}`;
      made.append(element("b", WRITE.speedup(value)));
      return made;
    }
    if (kind === "code") {
      made.append(element("span", columns.implementation[row], "chip"), " ", element("code", value || "no tunables"), " ", columns.default[row] ? element("span", "default", "chip") : "", best.has(row) ? element("span", "★ winner", "winner-mark") : "");
      return made;
    }
    made.append(...breakable(WRITE[kind](value)));
    return made;
  }

  // Long names may break after an underscore, and nowhere else.
  const breakable = (text) => text.split(/(?<=_)/).flatMap((part) => [part, element("wbr")]);

  function outcomeCell(made, row) {
    const value = columns.outcome[row], name = value.replaceAll("_", " ");
    const failed = !["passed", "device_unavailable"].includes(value);
    const log = columns.log[row];
    const label = element(log ? "a" : "span", value === "passed" ? "passed" : name, failed ? "bad outcome" : "");
    if (log) label.href = `${page.root}/${log}`;
    made.append(label);
    made.title = columns.reason[row] ?? "";
    return made;
  }

  // The codes; the sentences stand behind them, and are found by the search.
  function findingsCell(made, places) {
    made.className = "findings";
    const found = places.map((place) => page.variants.findings[place]);
    made.append(...[...new Set(found.map(({ code }) => code))].flatMap((code) => {
      const alike = found.filter((each) => each.code === code);
      const label = element("span", code.replaceAll("_", " "), alike[0].basis === "estimate" ? "finding estimate" : "finding");
      label.title = alike.map(({ sentence }) => sentence).join("\n");
      return [label, " "];
    }));
    return made;
  }

  function chosenRows() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = texts.flatMap((text, row) => (words.every((word) => text.includes(word)) && (!outcome.value || columns.outcome[row] === outcome.value) ? [row] : []));
    if (state.sort === null) return rows;
    const values = columns[state.sort];
    const order = (a, b) => (typeof a === "string" ? a.localeCompare(b) : Array.isArray(a) ? a.length - b.length : a - b);
    // What is absent is neither small nor large: it goes last, whichever way one sorts.
    return rows.sort((a, b) => (values[a] === null) - (values[b] === null) || (values[a] === null ? 0 : (state.up ? 1 : -1) * order(values[a], values[b])));
  }

  function draw() {
    const rows = chosenRows(), visible = rows.slice(0, state.limit);
    table.tBodies[0].replaceChildren(...visible.map((row) => {
      const made = element("tr");
      made.append(...shown.map((column) => cell(column, row)));
      return made;
    }));
    const say = (count) => count.toLocaleString("en");
    document.getElementById("variants-count").textContent = `${say(rows.length)} of ${counted(page.variants.rows, "variant")}`;
    const more = document.getElementById("variants-more");
    more.replaceChildren();
    if (rows.length > visible.length) {
      const button = element("button", `Show ${say(Math.min(STEP * 5, rows.length - visible.length))} more of ${say(rows.length - visible.length)}`);
      button.addEventListener("click", () => { state.limit += STEP * 5; draw(); });
      more.append(button);
    }
  }

  function heading({ name, heading: text, kind, title }) {
    const made = element("th", "", ["text", "code", "outcome", "findings"].includes(kind) ? "" : kind === "estimate" ? "number estimate" : "number");
    made.scope = "col";
    made.title = title;
    made.tabIndex = 0;
    made.append(text);
    const sort = () => {
      state.up = state.sort === name ? !state.up : true;
      state.sort = name;
      table.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
      made.setAttribute("aria-sort", state.up ? "ascending" : "descending");
      draw();
    };
    made.addEventListener("click", sort);
    made.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); sort(); } });
    return made;
  }

  const row = element("tr");
  row.append(...shown.map(heading));
  table.tHead.append(row);
  const outcomes = [...new Set(columns.outcome)].sort();
  outcome.replaceChildren(new Option("all", ""), ...outcomes.map((name) => new Option(name.replaceAll("_", " "), name)));
  const restart = () => { state.limit = STEP; draw(); };
  search.addEventListener("input", restart);
  outcome.addEventListener("change", restart);
  draw();
})();
