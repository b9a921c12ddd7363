// The plots: reads #page-data, draws with plotly.js in the colours of the style sheet, light or dark.
"use strict";
const page = JSON.parse(document.getElementById("page-data").textContent);
const columns = page.variants.columns;
const tasks = new Map(page.tasks.map((task) => [task.task, task]));
const VERDICTS = ["faster", "indistinguishable", "slower"];
const SYMBOLS = ["circle", "diamond", "square", "triangle-up"];
// The buttons are named one by one: the default set has one that sends the data to a server.
const CONFIG = { displaylogo: false, responsive: true, modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]] };

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
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
function rate(value, unit) {
  const prefixes = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]];
  const [scale, prefix] = prefixes.find(([size]) => value >= 0.9995 * size) || prefixes[5];
  return `${digits(value / scale)} ${prefix}${unit}`;
}

function layout(changes) {
  const axis = { gridcolor: colour("line"), linecolor: colour("line"), zeroline: false, automargin: true, ticks: "" };
  const font = { family: getComputedStyle(document.body).fontFamily, size: 12, color: colour("ink") };
  return {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font, margin: { l: 10, r: 20, t: 10, b: 40 },
    legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0, font: { color: colour("soft") } },
    hoverlabel: { bgcolor: colour("tint"), bordercolor: colour("line"), font: { color: colour("ink"), family: font.family } },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: colour("line"), activecolor: colour("soft") }, hovermode: "closest", ...changes,
    xaxis: { ...axis, ...changes.xaxis, title: { text: changes.xaxis.title, font: { color: colour("soft") } } },
    yaxis: { ...axis, ...changes.yaxis, title: { text: changes.yaxis.title || "", font: { color: colour("soft") } } },
  };
}

function fill(select, options, draw) {
  select.replaceChildren(...options.map(([value, text]) => new Option(text, value)));
  select.addEventListener("change", draw);
}
const rowsOf = (task) => columns.task.flatMap((name, row) => (name === task && columns.median_seconds[row] !== null ? [row] : []));
const winnerRows = () => page.winners.map(({ task, variant }) => columns.task.findIndex((name, row) => name === task && columns.variant[row] === variant));
const wrapped = (text) => text.replace(/(.{1,60})(\s|$)/g, "$1<br>");

// Powers of two beside 1 that lie in the range: what one reads off a ratio's axis.
function ratioTicks(values) {
  const low = Math.min(...values, 1), high = Math.max(...values, 1);
  const all = [0.03125, 0.0625, 0.125, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 128];
  const fine = high / low < 3 ? [0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 1.75, 2, 2.5, 3] : all;
  const ticks = fine.filter((tick) => tick >= low / 1.3 && tick <= high * 1.3);
  const room = Math.log10(high / low) * 0.08 + 0.02;
  return { type: "log", tickvals: ticks, ticktext: ticks.map((tick) => `${tick}×`), range: [Math.log10(low) - room, Math.log10(high) + room] };
}
// One tick per decade, written with its prefix.
function decadeTicks(values) {
  const low = Math.floor(Math.log10(Math.min(...values))), high = Math.ceil(Math.log10(Math.max(...values)));
  const ticks = Array.from({ length: high - low + 1 }, (_, place) => 10 ** (low + place));
  return { type: "log", tickvals: ticks, ticktext: ticks.map((tick) => rate(tick, "").replace(".00", "").replace(".0", "")) };
}
function referenceLine(count) {
  return { x: [1, 1], y: [-0.7, count - 0.3], mode: "lines", line: { color: colour("ink"), width: 1.2 }, hoverinfo: "skip", showlegend: false };
}

const MOST_ROWS = 60;
function drawSpeedup() {
  const chosen = document.getElementById("speedup-task").value;
  const every = chosen ? rowsOf(chosen).sort((a, b) => columns.median_seconds[a] - columns.median_seconds[b]) : winnerRows();
  const rows = every.slice(0, MOST_ROWS);
  const label = (row) => chosen ? columns.configuration[row] || columns.implementation[row] : `${columns.kernel[row]} · ${columns.workload[row]} · ${columns.hardware[row]}`;
  const traces = [referenceLine(rows.length)], extent = [];
  page.baselines.forEach(({ name, label: text }, place) => {
    const offset = (place - (page.baselines.length - 1) / 2) * 0.26;
    for (const verdict of VERDICTS) {
      const mine = rows.map((row, y) => [row, y]).filter(([row]) => columns[`verdict.${name}`][row] === verdict);
      const pick = (part) => mine.map(([row]) => columns[`speedup.${name}${part}`][row]);
      const [value, low, high] = [pick(""), pick(".low"), pick(".high")];
      extent.push(...low, ...high);
      traces.push({
        x: value, y: mine.map(([, y]) => y + offset), mode: "markers", showlegend: false,
        marker: { color: verdictColour(verdict), symbol: SYMBOLS[place % SYMBOLS.length], size: 9 },
        error_x: { type: "data", symmetric: false, array: high.map((end, i) => end - value[i]), arrayminus: value.map((end, i) => end - low[i]), color: verdictColour(verdict), thickness: 2, width: 4 },
        hovertemplate: mine.map(([row], i) => `<b>${columns.kernel[row]} · ${columns.workload[row]}</b><br>${wrapped(columns.configuration[row])}${seconds(columns.median_seconds[row])}<br>vs ${text}: <b>${digits(value[i])}×</b> (${digits(low[i])} – ${digits(high[i])}), ${verdict}<extra></extra>`),
      });
    }
    traces.push({ x: [null], y: [null], mode: "markers", name: `vs ${text}`, marker: { color: colour("ink"), symbol: SYMBOLS[place % SYMBOLS.length], size: 9 } });
  });
  for (const verdict of VERDICTS) traces.push({ x: [null], y: [null], mode: "lines", name: verdict, line: { color: verdictColour(verdict), width: 4 } });
  const left = every.length - rows.length;
  Plotly.react("plot-speedup", traces, layout({
    height: 110 + rows.length * (12 + 11 * page.baselines.length),
    xaxis: { ...ratioTicks(extent), title: `speed-up (log scale; right of 1 is faster)${left > 0 ? ` · the fastest ${MOST_ROWS} of ${every.length}` : ""}` },
    yaxis: { tickvals: rows.map((_, y) => y), ticktext: rows.map(label), range: [rows.length - 0.3, -0.7], showgrid: false },
  }), CONFIG);
}

function drawSamples() {
  const series = page.samples[document.getElementById("samples-task").value] || {};
  const labels = new Map(page.baselines.map(({ name, label }) => [name, label]));
  const all = Object.values(series).flat();
  const [scale, unit] = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]].find(([size]) => Math.max(...all) >= size) || [1e-9, "ns"];
  const traces = Object.entries(series).map(([name, values], place) => ({
    x: values.map((_, batch) => batch), y: values.map((value) => value / scale), mode: "lines+markers",
    name: labels.get(name) || "winner", line: { width: 1, color: colour(`series-${place + 1}`) },
    marker: { size: 5, color: colour(`series-${place + 1}`), symbol: SYMBOLS[place % SYMBOLS.length] },
    hovertemplate: `batch %{x}: %{y:.4g} ${unit}<extra></extra>`,
  }));
  Plotly.react("plot-samples", traces, layout({ height: 320, xaxis: { title: "batch, in the order taken" }, yaxis: { title: `${unit} per call`, rangemode: "tozero" } }), CONFIG);
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
  return { x, y: x.map((at) => Math.min(flops, at * bandwidth)), mode: "lines", name, hovertemplate: `${name}<br>${rate(bandwidth, "B/s")}, ${rate(flops, "FLOP/s")}<extra></extra>`, line: { width: 2, ...style } };
}
// A thinner slope for a cache, named where it enters the plot.
function cacheCeiling({ name, bandwidth }, roof, range) {
  const line = ceiling(`measured: copy within ${name}`, bandwidth, Math.max(roof.vector_flops, roof.matrix_flops), range, { color: colour("soft"), width: 1 });
  const label = { x: [range[0] * 1.08], y: [range[0] * 1.08 * bandwidth], mode: "text", text: [name], textposition: "top right", textfont: { size: 11, color: colour("soft") }, hoverinfo: "skip", showlegend: false };
  return [{ ...line, showlegend: false }, label];
}
function drawRoofline() {
  const [hardware, dtype] = document.getElementById("roofline-device").value.split("|");
  const roof = page.roofs.find((entry) => entry.hardware === hardware && entry.dtype === dtype);
  const mine = page.tasks.filter((task) => task.hardware === hardware && task.dtype === dtype && task.intensity);
  const at = mine.map((task) => task.intensity);
  const range = [Math.min(...at, 0.5) / 3, Math.max(...at, 8) * 6];
  const traces = [];
  if (roof) {
    for (const cache of roof.caches) traces.push(...cacheCeiling(cache, roof, range));
    traces.push(ceiling("measured: copy bandwidth, vector FMA", roof.copy_bandwidth, roof.vector_flops, range, { color: colour("soft") }));
    traces.push(ceiling("measured: copy bandwidth, matrix product", roof.copy_bandwidth, roof.matrix_flops, range, { color: colour("ink") }));
  } else {
    const peaks = new Map(mine.filter((task) => task.peak_flops && task.peak_bandwidth).map((task) => [task.peak_name, task]));
    const dashes = ["dash", "dot", "dashdot"];
    for (const [name, task] of peaks) traces.push(ceiling(`ESTIMATE: declared dram_bandwidth and ${name}`, task.peak_bandwidth, task.peak_flops, range, { color: colour("estimate"), dash: dashes.shift() }));
  }
  const kernels = [...new Set(mine.map((task) => task.kernel))];
  kernels.forEach((kernel, place) => traces.push(...rooflinePoints(kernel, colour(`series-${(place % 6) + 1}`), mine, roof)));
  Plotly.react("plot-roofline", traces, layout({
    height: 460, legend: { orientation: "v", x: 1.01, y: 0.95, yanchor: "top", font: { color: colour("soft") } },
    xaxis: { ...decadeTicks(range), title: "arithmetic intensity, FLOP per compulsory byte", range: range.map(Math.log10) },
    yaxis: { ...decadeTicks(traces.flatMap((trace) => trace.y).filter(Boolean)), title: roof ? "achieved FLOP/s" : "FLOP/s (estimate: bound, not achieved)" },
  }), CONFIG);
}
const boundText = (row) => `${columns.bound[row]}-bound${columns.bound[row] === "memory" && columns.memory_level[row] ? ` (${columns.memory_level[row]})` : ""}`;
function rooflinePoints(kernel, paint, all, roof) {
  const mine = all.filter((task) => task.kernel === kernel);
  if (!roof) {
    const bounded = mine.filter((task) => task.estimate_seconds);
    return [{
      x: bounded.map((task) => task.intensity), y: bounded.map((task) => task.flops / task.estimate_seconds), mode: "markers", name: `${kernel}: estimate of the bound`,
      marker: { color: colour("estimate"), symbol: "diamond-open", size: 11, line: { width: 2 } },
      hovertemplate: bounded.map((task) => `<b>${task.label}</b><br>estimate: not below ${seconds(task.estimate_seconds)}<extra></extra>`),
    }];
  }
  const best = new Set(winnerRows());
  const rows = mine.flatMap((task) => rowsOf(task.task).filter((row) => columns.roofline_share[row]).map((row) => [task, row]));
  const winners = rows.filter(([, row]) => best.has(row));
  const points = (chosen, name, marker) => ({
    x: chosen.map(([task]) => task.intensity), y: chosen.map(([, row]) => columns.flops_per_second[row]), mode: "markers", name, marker,
    hovertemplate: chosen.map(([task, row]) => `<b>${task.label}</b><br>${wrapped(columns.configuration[row])}${seconds(columns.median_seconds[row])}, ${rate(columns.flops_per_second[row], "FLOP/s")}<br>${digits(100 * columns.roofline_share[row])} % of its roofline, ${boundText(row)}<extra></extra>`),
  });
  const own = winners.map(([task, row]) => [task, columns.flops_per_second[row] / columns.roofline_share[row]]);
  return [
    points(rows, kernel, { color: paint, size: 6, opacity: 0.45 }),
    points(winners, `${kernel}: winner`, { color: paint, size: 11, line: { width: 1.5, color: colour("panel") } }),
    { x: own.map(([task]) => task.intensity), y: own.map(([, top]) => top), mode: "markers", name: `${kernel}: its ceiling`, marker: { symbol: "line-ew", size: 26, color: paint, line: { width: 3, color: paint } },
      hovertemplate: own.map(([task, top]) => `<b>${task.label}</b><br>its measured ceiling: ${rate(top, "FLOP/s")}<extra></extra>`) },
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
    ticks.push(`${effect.tunable} = <b>${effect.level}</b>`);
    y += 1;
  }
  const value = rows.map(([effect]) => effect.time_ratio);
  const low = rows.map(([effect, ], i) => effect.time_ratio_low ?? value[i]), high = rows.map(([effect], i) => effect.time_ratio_high ?? value[i]);
  const paint = value.map((ratio, i) => (rows[i][0].time_ratio_low === null ? colour("same") : high[i] < 1 ? colour("faster") : low[i] > 1 ? colour("slower") : colour("same")));
  const bars = rows.map(([, place], i) => ({ x: [low[i], high[i]], y: [place, place], mode: "lines", line: { color: paint[i], width: 2.5 }, hoverinfo: "skip", showlegend: false }));
  Plotly.react("plot-effects", [referenceLine(y), ...bars, {
    x: value, y: rows.map(([, place]) => place), mode: "markers", showlegend: false, marker: { size: 10, color: paint },
    hovertemplate: rows.map(([effect], i) => `<b>${effect.tunable} = ${effect.level}</b><br>time × ${digits(value[i])} (${digits(low[i])} – ${digits(high[i])})<br>${effect.variants} variants, ${effect.groups} groups, ${effect.method}<extra></extra>`),
  }], layout({
    height: 80 + 27 * y, xaxis: { ...ratioTicks([...low, ...high]), title: "time ratio (log scale; left of 1 is faster)" },
    yaxis: { tickvals: rows.map(([, place]) => place), ticktext: ticks, range: [y - 0.3, -0.7], showgrid: false },
  }), CONFIG);
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
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawings.forEach((draw) => draw()));
}
start();
