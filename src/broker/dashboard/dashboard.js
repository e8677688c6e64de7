// SPDX-License-Identifier: GPL-2.0-or-later
// The node's page: asks pods, metrics and state, and shows the pods with their rates. What comes from the mesh is
// only ever set as text.
"use strict";

const POLL_MS = 2000;
const STATE_EVERY = 3; // state comes with every third poll: it asks all silos for all connections
const ASK_MS = 15000;
const HISTORY = 60;
const ROWS_MAX = 500; // connections shown of one pod

const known = new Map(); // namespace/name -> pod
let health = null;
let chosen = null;
let sortBy = "name";
let sortUp = true;
let round = 0;

const el = (id) => document.getElementById(id);

function node(tag, text, cls) {
  const n = document.createElement(tag);
  if (text !== undefined) n.textContent = text;
  if (cls) n.className = cls;
  return n;
}

// --- numbers ---------------------------------------------------------------

function scaled(value, units, step) {
  let i = 0;
  while (value >= step && i < units.length - 1) {
    value /= step;
    i++;
  }
  return (value >= 100 || Number.isInteger(value) ? Math.round(value) : value.toFixed(1)) + units[i];
}

const isNumber = (v) => typeof v === "number" && Number.isFinite(v);
const bytes = (v) => isNumber(v) ? scaled(v, [" B", " KiB", " MiB", " GiB", " TiB"], 1024) : "–";
const count = (v) => isNumber(v) ? scaled(v, ["", "k", "M", "G"], 1000) : "–";
const rate = (v) => isNumber(v) ? (v > 0 && v < 10 ? v.toFixed(1) : count(Math.round(v))) : "–";
const percent = (v) => isNumber(v) ? (v * 100).toFixed(v < 0.1 ? 1 : 0) + " %" : "–";

function span(seconds) {
  const past = seconds < 0;
  let s = Math.abs(Math.round(seconds));
  const text = s >= 172800 ? Math.round(s / 86400) + " d" : s >= 7200 ? Math.round(s / 3600) + " h" : s >= 120 ? Math.round(s / 60) + " min" : s + " s";
  return past ? "expired " + text + " ago" : "in " + text;
}

// --- metrics ---------------------------------------------------------------

// Label values of one sample: \\, \" and \n are escaped.
function labelsOf(text) {
  const labels = {};
  const re = /([A-Za-z_][A-Za-z0-9_]*)="((?:[^"\\]|\\.)*)"/g;
  for (let m; (m = re.exec(text));) labels[m[1]] = m[2].replace(/\\(.)/g, (_, c) => c === "n" ? "\n" : c);
  return labels;
}

// Sums of our own per-pod samples: pod -> metric -> value.
function parseMetrics(text) {
  const pods = new Map();
  for (const line of text.split("\n")) {
    if (!line.startsWith("culvert_silo_")) continue;
    const open = line.indexOf("{");
    const close = line.lastIndexOf("}");
    if (open < 0 || close < open) continue;
    const labels = labelsOf(line.slice(open + 1, close));
    const key = labels.pod_namespace + "/" + labels.pod_name;
    const name = line.slice("culvert_silo_".length, open);
    if (!pods.has(key)) pods.set(key, {});
    const all = pods.get(key);
    all[name] = (all[name] || 0) + Number(line.slice(close + 1).trim().split(" ")[0]);
  }
  return pods;
}

const RATES = {opened: "connections_opened_total", received: "received_bytes_total", sent: "sent_bytes_total", cpu: "cpu_seconds_total"};

function takeMetrics(text) {
  const now = performance.now() / 1000;
  const told = parseMetrics(text);
  for (const [key, pod] of known) {
    const m = told.get(key) || {};
    pod.conns = m.connections;
    pod.rss = m.resident_memory_bytes;
    pod.handshakes = m.tls_handshakes_total;
    for (const [name, metric] of Object.entries(RATES)) {
      const before = pod.last && pod.last[metric];
      const took = pod.last ? now - pod.last.at : 0;
      // A counter that fell is another silo's.
      pod[name] = isNumber(m[metric]) && isNumber(before) && m[metric] >= before && took > 0 ? (m[metric] - before) / took : undefined;
    }
    pod.last = {...m, at: now};
    pod.history.push((pod.received || 0) + (pod.sent || 0));
    if (pod.history.length > HISTORY) pod.history.shift();
  }
}

// --- pods and state --------------------------------------------------------

function takePods(pods) {
  const now = new Set();
  for (const p of pods) {
    const key = p.namespace + "/" + p.name;
    const pod = known.get(key) || {history: []};
    if (pod.uid !== p.uid) pod.last = undefined;
    Object.assign(pod, p, {key});
    known.set(key, pod);
    now.add(key);
  }
  for (const key of known.keys()) if (!now.has(key)) known.delete(key);
}

function takeState(state) {
  health = state.health;
  const version = state.version || {};
  el("version").textContent = [version.version, version.buildTag].filter(Boolean).join(" ");
  const leaves = new Map();
  for (const c of state.certificates || []) leaves.set(c.identity, c);
  for (const pod of known.values()) {
    const told = (state.workloadState || {})[pod.uid] || {};
    pod.connections = told.connections;
    pod.note = told.note;
    // Of identities the trust domain is not ours to know here: namespace and account decide.
    const tail = "/ns/" + pod.namespace + "/sa/" + pod.serviceAccount;
    pod.certificate = undefined;
    for (const [identity, c] of leaves) if (identity.endsWith(tail)) pod.certificate = c;
    const leaf = pod.certificate && pod.certificate.certChain[0];
    pod.expires = leaf ? (Date.parse(leaf.expirationTime) - Date.now()) / 1000 : undefined;
  }
}

// --- the table -------------------------------------------------------------

const COLUMNS = [
  {id: "name", title: "Pod", value: (p) => p.key},
  {id: "state", title: "State", value: (p) => p.state},
  {id: "conns", title: "Connections", num: true, show: (p) => count(p.conns)},
  {id: "opened", title: "Opened / s", num: true, show: (p) => rate(p.opened)},
  {id: "received", title: "Received / s", num: true, show: (p) => bytes(p.received)},
  {id: "sent", title: "Sent / s", num: true, show: (p) => bytes(p.sent)},
  {id: "history", title: "Last two minutes", value: (p) => Math.max(0, ...p.history)},
  {id: "cpu", title: "CPU", num: true, show: (p) => percent(p.cpu)},
  {id: "rss", title: "Memory", num: true, show: (p) => bytes(p.rss)},
  {id: "restarts", title: "Crashes", num: true, show: (p) => String(p.restarts)},
  {id: "expires", title: "Certificate ends", show: (p) => isNumber(p.expires) ? span(p.expires) : "none"},
];

function spark(history) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const line = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
  const top = Math.max(1, ...history);
  svg.setAttribute("class", "spark");
  svg.setAttribute("viewBox", "0 0 " + (HISTORY - 1) + " 20");
  svg.setAttribute("preserveAspectRatio", "none");
  line.setAttribute("points", history.map((v, i) => (HISTORY - history.length + i) + "," + (19 - 18 * v / top).toFixed(1)).join(" "));
  svg.append(line);
  return svg;
}

function stateCell(pod) {
  const cell = node("td");
  const up = pod.state === "Up";
  const text = node("span", undefined, up ? (pod.note ? "warn" : "good") : "bad");
  text.append(node("span", undefined, "dot"), pod.state);
  cell.append(text);
  const why = pod.reason || pod.note;
  if (why) {
    const line = node("span", why, "why");
    line.title = why;
    cell.append(line);
  }
  return cell;
}

function row(pod) {
  const tr = node("tr", undefined, pod.key === chosen ? "chosen" : "");
  for (const c of COLUMNS) {
    let cell;
    if (c.id === "state") {
      cell = stateCell(pod);
    } else if (c.id === "history") {
      cell = node("td");
      cell.append(spark(pod.history));
    } else {
      cell = node("td", c.show ? c.show(pod) : c.value(pod), c.num ? "num" : "");
      if (c.id === "expires" && isNumber(pod.expires) && pod.expires < 600) cell.className = pod.expires < 0 ? "bad" : "warn";
    }
    tr.append(cell);
  }
  tr.tabIndex = 0;
  const choose = () => {
    chosen = chosen === pod.key ? null : pod.key;
    draw();
  };
  tr.onclick = choose;
  tr.onkeydown = (e) => { if (e.key === "Enter") choose(); };
  return tr;
}

function compare(a, b) {
  const column = COLUMNS.find((c) => c.id === sortBy);
  const of = (p) => column.value ? column.value(p) : p[sortBy];
  const x = of(a), y = of(b);
  const order = typeof x === "string" || typeof y === "string" ? String(x).localeCompare(String(y), undefined, {numeric: true}) : (isNumber(x) ? x : -1) - (isNumber(y) ? y : -1);
  return (sortUp ? order : -order) || a.key.localeCompare(b.key, undefined, {numeric: true});
}

function drawHeads() {
  el("heads").replaceChildren(...COLUMNS.map((c) => {
    const th = node("th", undefined, c.num ? "num" : "");
    const button = node("button", c.title + (c.id === sortBy ? (sortUp ? " ▲" : " ▼") : ""));
    button.type = "button";
    button.onclick = () => {
      sortUp = sortBy === c.id ? !sortUp : !c.num;
      sortBy = c.id;
      draw();
    };
    th.append(button);
    return th;
  }));
}

function drawCards(pods) {
  const sum = (name) => pods.some((p) => isNumber(p[name])) ? pods.reduce((all, p) => all + (isNumber(p[name]) ? p[name] : 0), 0) : undefined;
  el("card-pods").textContent = pods.filter((p) => p.state === "Up").length + " / " + pods.length;
  el("card-conns").textContent = count(sum("conns"));
  el("card-opened").textContent = rate(sum("opened"));
  el("card-received").textContent = bytes(sum("received"));
  el("card-sent").textContent = bytes(sum("sent"));
  el("card-cpu").textContent = percent(sum("cpu"));
  el("card-rss").textContent = bytes(sum("rss"));
}

function drawHealth() {
  const badge = el("health");
  if (!health) return;
  badge.className = "badge " + (health.isReady ? "good" : "bad");
  badge.textContent = health.isReady ? "ready" : "not ready: " + health.pending;
}

function fact(name, value) {
  return [node("dt", name), node("dd", value === undefined || value === null || value === "" ? "–" : String(value))];
}

function drawDetail() {
  const pod = known.get(chosen);
  el("detail").hidden = !pod;
  if (!pod) return;
  const leaf = pod.certificate && pod.certificate.certChain[0];
  el("detail-name").textContent = pod.key;
  el("detail-facts").replaceChildren(...[
    fact("Uid", pod.uid), fact("Service account", pod.serviceAccount), fact("Process", pod.pid || "none"), fact("Network namespace", pod.netnsInode),
    fact("Identity", pod.certificate && pod.certificate.identity), fact("Certificate", pod.certificate ? pod.certificate.state : "none told yet"),
    fact("Valid", leaf && leaf.validFrom + " to " + leaf.expirationTime), fact("Serial number", leaf && leaf.serialNumber),
    fact("TLS handshakes", pod.handshakes), fact("Why not up", pod.reason), fact("Note", pod.note),
  ].flat());
  const all = [];
  for (const direction of ["inbound", "outbound"]) for (const c of (pod.connections || {})[direction] || []) all.push([direction, c]);
  el("detail-conns").replaceChildren(...all.slice(0, ROWS_MAX).map(([direction, c]) => {
    const tr = node("tr");
    for (const text of [direction, c.protocol, c.src, c.originalDst || "", c.actualDst]) tr.append(node("td", text));
    return tr;
  }));
  el("detail-more").textContent = all.length > ROWS_MAX ? "and " + (all.length - ROWS_MAX) + " more" : all.length ? "" : "none open";
}

function draw() {
  const pods = [...known.values()];
  const want = el("filter").value.trim().toLowerCase();
  const shown = pods.filter((p) => p.key.toLowerCase().includes(want)).sort(compare);
  drawHeads();
  drawCards(pods);
  drawHealth();
  // What has the focus keeps it.
  const at = [...el("pods").children].indexOf(document.activeElement);
  el("pods").replaceChildren(...shown.map(row));
  if (at >= 0 && el("pods").children[at]) el("pods").children[at].focus();
  el("shown").textContent = want ? shown.length + " of " + pods.length : "";
  drawDetail();
}

// --- asking ----------------------------------------------------------------

async function ask(path, kind) {
  const answer = await fetch(path, {cache: "no-store", signal: AbortSignal.timeout(ASK_MS)});
  if (!answer.ok) throw new Error(path + ": " + answer.status + " " + answer.statusText);
  return answer[kind]();
}

async function poll() {
  try {
    takePods(await ask("pods", "json"));
    takeMetrics(await ask("metrics", "text"));
    if (round % STATE_EVERY === 0) takeState(await ask("state", "json"));
    round++;
    el("banner").hidden = true;
    el("fresh").textContent = "as of " + new Date().toLocaleTimeString();
    document.body.dataset.round = round;
  } catch (e) {
    el("banner").hidden = false;
    el("banner").textContent = "The node does not answer: " + e.message + ". What is shown may be old.";
  }
  draw();
}

async function main() {
  el("filter").oninput = draw;
  el("detail-close").onclick = () => {
    chosen = null;
    draw();
  };
  for (;;) {
    // Nobody looks: the node is left alone.
    if (!document.hidden) await poll();
    await new Promise((done) => setTimeout(done, POLL_MS));
  }
}

main();
