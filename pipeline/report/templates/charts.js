// The charts: reads #page-data, draws with plot.js in the colours of the style sheet, light or dark.
"use strict";
const page = JSON.parse(document.getElementById("page-data").textContent);
const columns = page.variants.columns;
const tasks = new Map(page.tasks.map((task) => [task.task, task]));
const VERDICTS = ["faster", "indistinguishable", "slower"];
const SYMBOLS = ["circle", "diamond", "square", "triangle"];

const verdictColour = (verdict) => colour(verdict === "indistinguishable" ? "same" : verdict);

function digits(value) {
  const size = Math.abs(value);
  if (size !== 0 && size < 0.001) return value.toExponential(2);
  return value.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3);
}
function seconds(value) {
  const units = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]];
  const [scale, unit] = units.find(([size]) => Math.abs(value) >= 0.9995 * size) || units[3];
  return `${digits(value / scale)} ${unit}`;
}
const counted = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
function rate(value, unit) {
  const prefixes = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]];
  const [scale, prefix] = prefixes.find(([size]) => value >= 0.9995 * size) || prefixes[5];
  return `${digits(value / scale)} ${prefix}${unit}`;
}

function fill(select, options, draw) {
  select.replaceChildren(...options.map(([value, text]) => new Option(text, value)));
  select.addEventListener("change", draw);
}
const rowsOf = (task) => columns.task.flatMap((name, row) => (name === task && columns.median_seconds[row] !== null ? [row] : []));
const winnerRows = () => page.winners.map(({ task, variant }) => columns.task.findIndex((name, row) => name === task && columns.variant[row] === variant));
const wrapped = (text) => text.replace(/(.{1,60})(\s|$)/g, "$1\n");

// Around 1: what one reads off a ratio's axis.
function ratioAxis(values, title) {
  const low = Math.min(...values, 1), high = Math.max(...values, 1);
  const room = (high / low) ** 0.08 * 1.05;
  const fine = [0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 1.75, 2, 2.5, 3];
  const powers = Array.from({ length: 21 }, (_, place) => 2 ** (place - 10)), sparse = high / low > 300;
  const ticks = (high / low < 3 ? fine : powers.filter((_, place) => !sparse || place % 2 === 0)).filter((tick) => tick >= low / room && tick <= high * room);
  return { log: true, ticks: ticks.map((tick) => [tick, `${+tick.toPrecision(3)}×`]), range: [low / room, high * room], title };
}
// One tick per decade, written with its prefix.
function decadeAxis(values, title, exact) {
  const low = Math.floor(Math.log10(Math.min(...values))), high = Math.ceil(Math.log10(Math.max(...values)));
  const range = exact ?? [10 ** low, 10 ** high];
  const ticks = Array.from({ length: high - low + 1 }, (_, place) => 10 ** (low + place)).filter((tick) => tick >= range[0] && tick <= range[1]);
  return { log: true, ticks: ticks.map((tick) => [tick, tick < 1 ? String(+tick.toPrecision(1)) : rate(tick, "").replace(".00", "").replace(".0", "")]), range, title };
}
function rowAxis(labels, places) {
  return { ticks: places.map((place, i) => [place, labels[i]]), range: [Math.max(...places, 0) + 0.7, -0.7], grid: false };
}
function referenceLine(last) {
  return { x: [1, 1], y: [-0.7, last + 0.7], line: 1.2, color: colour("ink") };
}

const MOST_ROWS = 60;
function drawSpeedup() {
  const chosen = document.getElementById("speedup-task").value;
  const every = chosen ? rowsOf(chosen).sort((a, b) => columns.median_seconds[a] - columns.median_seconds[b]) : winnerRows();
  const rows = every.slice(0, MOST_ROWS), best = new Set(winnerRows());
  const label = (row) => chosen ? `${best.has(row) ? "★ " : ""}${columns.configuration[row] || columns.implementation[row]}` : `${columns.kernel[row]} · ${columns.workload[row]} · ${columns.hardware[row]}`;
  const series = [referenceLine(rows.length - 1)], extent = [];
  page.baselines.forEach(({ name, label: text }, place) => {
    const offset = (place - (page.baselines.length - 1) / 2) * 0.26, symbol = SYMBOLS[place % SYMBOLS.length];
    for (const verdict of VERDICTS) {
      const mine = rows.map((row, y) => [row, y]).filter(([row]) => columns[`verdict.${name}`][row] === verdict);
      const pick = (part) => mine.map(([row]) => columns[`speedup.${name}${part}`][row]);
      const [value, low, high] = [pick(""), pick(".low"), pick(".high")];
      extent.push(...low, ...high);
      series.push({
        x: value, y: mine.map(([, y]) => y + offset), points: true, color: verdictColour(verdict), symbol, size: 9, low, high,
        hover: mine.map(([row], i) => `${columns.kernel[row]} · ${columns.workload[row]}\n${wrapped(columns.configuration[row])}${seconds(columns.median_seconds[row])}\nvs ${text}: ${digits(value[i])}× (${digits(low[i])} – ${digits(high[i])}), ${verdict}`),
      });
    }
    series.push({ x: [], y: [], points: true, name: `vs ${text}`, color: colour("ink"), symbol, size: 9 });
  });
  for (const verdict of VERDICTS) series.push({ x: [], y: [], line: 4, name: verdict, color: verdictColour(verdict) });
  const left = every.length - rows.length;
  drawPlot("plot-speedup", {
    height: 70 + rows.length * (12 + 11 * page.baselines.length), series,
    x: ratioAxis(extent, `speed-up (log scale; right of 1 is faster)${left > 0 ? ` · the fastest ${MOST_ROWS} of ${every.length}` : ""}`),
    y: rowAxis(rows.map(label), rows.map((_, y) => y)),
  });
}

function drawSamples() {
  const found = page.samples[document.getElementById("samples-task").value] || {};
  const labels = new Map(page.baselines.map(({ name, label }) => [name, label]));
  const all = Object.values(found).flat(), most = Math.max(...all), longest = Math.max(...Object.values(found).map((values) => values.length));
  const [scale, unit] = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]].find(([size]) => most >= size) || [1e-9, "ns"];
  const series = Object.entries(found).map(([name, values], place) => ({
    x: values.map((_, batch) => batch), y: values.map((value) => value / scale), line: 1, points: true, size: 5,
    name: labels.get(name) || "winner", color: colour(`series-${place + 1}`), symbol: SYMBOLS[place % SYMBOLS.length],
    hover: values.map((value, batch) => `batch ${batch}: ${seconds(value)}`),
  }));
  drawPlot("plot-samples", { height: 320, series, x: { range: [-0.5, longest - 0.5], title: "batch, in the order taken" }, y: { range: [0, (most / scale) * 1.05], title: `${unit} per call, as measured` } });
}

function roofChoices() {
  const measured = page.roofs.map((roof) => [`${roof.hardware}|${roof.dtype}`, `${roof.hardware}, ${roof.dtype}: measured`]);
  const known = new Set(measured.map(([value]) => value));
  const absent = new Map();
  for (const task of page.tasks) {
    const value = `${task.hardware}|${task.dtype}`;
    if (!known.has(value)) absent.set(value, `${task.hardware}, ${task.dtype}: not measured, estimate`);
  }
  return [...measured, ...absent];
}
function ceiling(name, bandwidth, flops, range, style) {
  // Up the slope to the ridge, then flat.
  const ridge = flops / bandwidth, [low, high] = range;
  const x = [low, ...(ridge > low && ridge < high ? [ridge] : []), high];
  return { x, y: x.map((at) => Math.min(flops, at * bandwidth)), name, line: 2, hover: x.map(() => `${name}\n${rate(bandwidth, "B/s")}, ${rate(flops, "FLOP/s")}`), ...style };
}
// A thinner slope for a cache, named where it enters the plot.
function cacheCeiling({ name, bandwidth }, roof, range) {
  const line = ceiling(`measured: copy within ${name}`, bandwidth, Math.max(roof.vector_flops, roof.matrix_flops), range, { color: colour("soft"), line: 1 });
  return [{ ...line, name: "" }, { x: [range[0] * 1.08], y: [range[0] * 1.08 * bandwidth], texts: [name], color: colour("soft") }];
}
function drawRoofline() {
  const [hardware, dtype] = document.getElementById("roofline-device").value.split("|");
  const roof = page.roofs.find((entry) => entry.hardware === hardware && entry.dtype === dtype);
  const mine = page.tasks.filter((task) => task.hardware === hardware && task.dtype === dtype && task.intensity);
  const at = mine.map((task) => task.intensity);
  const range = [Math.min(...at, 0.5) / 3, Math.max(...at, 8) * 6];
  const series = [];
  if (roof) {
    for (const cache of roof.caches) series.push(...cacheCeiling(cache, roof, range));
    series.push(ceiling("measured: copy bandwidth, vector FMA", roof.copy_bandwidth, roof.vector_flops, range, { color: colour("soft") }));
    if (roof.matrix_flops > roof.vector_flops) series.push(ceiling("measured: copy bandwidth, matrix product", roof.copy_bandwidth, roof.matrix_flops, range, { color: colour("ink") }));
  } else {
    const peaks = new Map(mine.filter((task) => task.peak_flops && task.peak_bandwidth).map((task) => [task.peak_name, task]));
    const dashes = ["6 4", "2 4", "6 4 2 4"];
    for (const [name, task] of peaks) series.push(ceiling(`ESTIMATE: declared dram_bandwidth and ${name}`, task.peak_bandwidth, task.peak_flops, range, { color: colour("estimate"), dash: dashes.shift() }));
  }
  const kernels = [...new Set(mine.map((task) => task.kernel))];
  kernels.forEach((kernel, place) => series.push(...rooflinePoints(kernel, colour(`series-${(place % 6) + 1}`), mine, roof)));
  const rates = series.flatMap((each) => each.y).filter(Boolean);
  drawPlot("plot-roofline", {
    height: 440, series, x: decadeAxis(range, "arithmetic intensity, FLOP per compulsory byte", range),
    y: decadeAxis(rates.length ? rates : [1, 10], roof ? "achieved FLOP/s" : "FLOP/s (estimate: bound, not achieved)"),
  });
}
const boundText = (row) => `${columns.bound[row]}-bound${columns.bound[row] === "memory" && columns.memory_level[row] ? ` (${columns.memory_level[row]})` : ""}`;
function rooflinePoints(kernel, paint, all, roof) {
  const mine = all.filter((task) => task.kernel === kernel);
  if (!roof) {
    const bounded = mine.filter((task) => task.estimate_seconds);
    return [{
      x: bounded.map((task) => task.intensity), y: bounded.map((task) => task.flops / task.estimate_seconds), points: true, name: `${kernel}: estimate of the bound`,
      color: colour("estimate"), symbol: "diamond", hollow: true, size: 11,
      hover: bounded.map((task) => `${task.label}\nestimate: not below ${seconds(task.estimate_seconds)}`),
    }];
  }
  const best = new Set(winnerRows());
  const rows = mine.flatMap((task) => rowsOf(task.task).filter((row) => columns.roofline_share[row]).map((row) => [task, row]));
  const winners = rows.filter(([, row]) => best.has(row));
  const points = (chosen, name, look) => ({
    x: chosen.map(([task]) => task.intensity), y: chosen.map(([, row]) => columns.flops_per_second[row]), points: true, name, color: paint, ...look,
    hover: chosen.map(([task, row]) => `${task.label}\n${wrapped(columns.configuration[row])}${seconds(columns.median_seconds[row])}, ${rate(columns.flops_per_second[row], "FLOP/s")}\n${digits(100 * columns.roofline_share[row])} % of its roofline, ${boundText(row)}`),
  });
  const own = winners.map(([task, row]) => [task, columns.flops_per_second[row] / columns.roofline_share[row]]);
  return [
    points(rows, kernel, { size: 6, opacity: 0.45 }),
    points(winners, `${kernel}: winner`, { size: 11, edge: colour("panel") }),
    { x: own.map(([task]) => task.intensity), y: own.map(([, top]) => top), points: true, name: `${kernel}: its ceiling`, symbol: "bar", size: 26, color: paint,
      hover: own.map(([task, top]) => `${task.label}\nits measured ceiling: ${rate(top, "FLOP/s")}`) },
  ];
}

const effectKey = (effect) => [effect.kernel, effect.workload, effect.hardware, effect.implementation].join(" · ");
function drawEffects() {
  const chosen = page.effects.filter((effect) => effectKey(effect) === document.getElementById("effects-task").value);
  const ticks = [], rows = [];
  let y = 0, last = null;
  for (const effect of chosen) {
    if (last !== null && effect.tunable !== last) y += 0.7;
    last = effect.tunable;
    rows.push([effect, y]);
    ticks.push(`${effect.tunable} = ${effect.level}`);
    y += 1;
  }
  const value = rows.map(([effect]) => effect.time_ratio);
  const low = rows.map(([effect, ], i) => effect.time_ratio_low ?? value[i]), high = rows.map(([effect], i) => effect.time_ratio_high ?? value[i]);
  const paint = value.map((ratio, i) => (rows[i][0].time_ratio_low === null ? colour("same") : high[i] < 1 ? colour("faster") : low[i] > 1 ? colour("slower") : colour("same")));
  const known = [["faster", "faster"], ["slower", "slower"], ["same", "indistinguishable, or no interval"]].map(([paint, name]) => ({ x: [], y: [], points: true, size: 10, color: colour(paint), name }));
  const points = rows.map(([effect, place], i) => ({
    x: [value[i]], y: [place], points: true, size: 10, color: paint[i], low: [low[i]], high: [high[i]],
    hover: [`${effect.tunable} = ${effect.level}\ntime × ${digits(value[i])} (${digits(low[i])} – ${digits(high[i])})\n${counted(effect.variants, "variant")}, ${counted(effect.groups, "group")}, ${effect.method}`],
  }));
  drawPlot("plot-effects", {
    height: 60 + 27 * y, series: [referenceLine(y - 1), ...known, ...points],
    x: ratioAxis([...low, ...high], "time ratio (log scale; left of 1 is faster)"), y: rowAxis(ticks, rows.map(([, place]) => place)),
  });
  const body = document.querySelector("#effects-table tbody");
  body.replaceChildren(...rows.map(([effect], i) => {
    const row = document.createElement("tr");
    const first = i === 0 || rows[i - 1][0].tunable !== effect.tunable;
    const interval = effect.time_ratio_low === null ? "" : ` (${digits(low[i])} – ${digits(high[i])})`;
    const cells = [first ? effect.tunable + (effect.method === "matched" ? "" : " (unmatched)") : "", effect.level, effect.variants, digits(effect.time_ratio) + interval, `${digits(effect.best_ratio)}×`];
    row.append(...cells.map((text, place) => Object.assign(document.createElement(place ? "td" : "th"), { textContent: text, className: place > 1 ? "number" : "" })));
    return row;
  }));
}

const drawings = [];
function start() {
  if (page.winners.length) {
    const measured = [...new Set(columns.task.filter((_, row) => columns.median_seconds[row] !== null))];
    const named = (task) => `${tasks.get(task).label} (${tasks.get(task).optimization})`;
    fill(document.getElementById("speedup-task"), [["", "winners of all tasks"], ...measured.map((task) => [task, named(task)])], drawSpeedup);
    fill(document.getElementById("samples-task"), Object.keys(page.samples).map((task) => [task, named(task)]), drawSamples);
    document.getElementById("samples-task").closest("details").addEventListener("toggle", drawSamples);
    drawings.push(drawSpeedup, drawSamples);
  }
  fill(document.getElementById("roofline-device"), roofChoices(), drawRoofline);
  drawings.push(drawRoofline);
  if (page.effects.length) {
    document.getElementById("effects").hidden = false;
    document.getElementById("effects-empty").hidden = true;
    fill(document.getElementById("effects-task"), [...new Set(page.effects.map(effectKey))].map((key) => [key, key]), drawEffects);
    drawings.push(drawEffects);
  }
  drawings.forEach((draw) => draw());
  const again = () => drawings.forEach((draw) => draw());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  addEventListener("resize", again);
}
start();
