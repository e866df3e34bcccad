// The live views of asyncgpu_tutor. Python lays everything out and sends it as data (see traces/pictures/svg.py);
// here it is drawn again for each zoom, and answers to the mouse and the keyboard. Nothing is loaded from anywhere.

const SVG = "http://www.w3.org/2000/svg";
const ABOVE = 48, AXIS = 40, ROW = 20, RIGHT = 14; // pixels, as in the still
const SWEEP = 6000; // ms in which the clock passes what is in view
const LOWEST = 1.2, CROWDED = 3; // pixels: the height of a bar that is hardly busy; thin bars that are nearer are close
const KEYS = "← → along a lane, ↑ ↓ between lanes, Enter: chain, Space: play, + −: zoom, 0: all, Shift with ← →: move, [ and ]: a range begins and ends at the clock or the selected bar, Escape: choose nothing";

const escaped = text => String(text).replace(/[&<>"]/g, c => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
const clamp = (x, low, high) => Math.min(Math.max(x, low), high);

function made(parent, tag, options = {}, text = "") {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(options)) node.setAttribute(name, value);
  if (text) node.textContent = text;
  parent.append(node);
  return node;
}

// A part of the page whose keys are its own: JupyterLab would take the arrows from a slider.
function room(parent, css) {
  const node = made(parent, "div", { class: css, "data-lm-suppress-shortcuts": "true" });
  node.addEventListener("keydown", event => event.stopPropagation());
  return node;
}

const canvas = document.createElement("canvas").getContext("2d");
const widths = new Map(); // of texts at 11 pixels

function wide(text, size) {
  if (!widths.has(text)) {
    canvas.font = "11px system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif";
    widths.set(text, canvas.measureText(text).width);
  }
  return (widths.get(text) * size) / 11;
}

// From when to when a name has room in a bar: the longest time for which its kernel works, or waits.
function roomIn(waits, start, end) {
  const edges = [start, ...waits.flat(), end];
  const longest = edges.slice(1).reduce((best, edge, i) => (edge - edges[i] > edges[best + 1] - edges[best] ? i : best), 0);
  return [edges[longest], edges[longest + 1]];
}

function fitting(text, room, size) {
  if (wide(text, size) <= room) return text;
  for (let n = text.length - 1; n > 3; n--) {
    const short = text.slice(0, n).trimEnd() + "…";
    if (wide(short, size) <= room) return short;
  }
  return "";
}

function ticks(begin, end, most) {
  const least = (end - begin) / Math.max(most, 2), power = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 2.5, 5, 10].map(s => s * power).find(s => s >= least * 0.999);
  const found = [];
  for (let i = Math.ceil(begin / step - 1e-9); i <= end / step + 1e-9; i++) found.push(+(i * step).toPrecision(12));
  return found;
}

// ------------------------------------------------------------------ the timeline
// A bar is [id, start, end, y, height, look, text, state, lane, share]; times in us, heights in lanes, and a
// share is what part of its time is busy, where it stands for several.
class Timeline {
  constructor(parent) {
    this.root = room(parent, "agt agt-live");
    this.svg = document.createElementNS(SVG, "svg");
    this.svg.setAttribute("class", "agt");
    this.svg.setAttribute("tabindex", "0");
    this.svg.setAttribute("role", "group");
    this.root.append(this.svg);
    this.tip = made(this.root, "div", { class: "agt-hover", hidden: "" });
    const bar = made(this.root, "div", { class: "agt-controls" });
    this.play = this.button(bar, "Play", "Play", () => this.toggle());
    this.slider = made(bar, "input", { type: "range", min: 0, max: 1000, value: 1000, "aria-label": "clock" });
    this.slider.addEventListener("input", () => { this.stop(); this.setClock(this.a + ((this.b - this.a) * this.slider.value) / 1000); });
    this.time = made(bar, "output", { class: "agt-time" });
    this.button(bar, "−", "Zoom out", () => this.zoom(2));
    this.button(bar, "+", "Zoom in", () => this.zoom(0.5));
    this.button(bar, "All", "Show all", () => this.all());
    this.button(bar, "Chain", "Show the chain of the selected bar, or of the last one", () => this.toggleChain());
    this.ranging = this.button(bar, "Range", "Drag to select a range, and see its sums", () => this.toggleRange());
    this.button(bar, "Save", "Save as a picture", () => this.save());
    const find = made(bar, "input", { type: "search", placeholder: "find", "aria-label": "find spans by name" });
    find.addEventListener("input", () => this.find(find.value));
    find.addEventListener("keydown", event => { if (event.key === "Enter") this.next(); });
    this.status = made(this.root, "div", { class: "agt-status", "aria-live": "polite" });
    this.lesson = made(this.root, "p", { class: "agt-lesson" });
    const more = made(this.root, "details");
    made(more, "summary", {}, "In words, and keys");
    this.words = made(more, "p");
    made(more, "p", {}, KEYS + ". With the mouse: drag to move, Shift and drag for a range, Ctrl and the wheel to zoom.");
    this.listen();
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(this.root);
  }

  button(parent, sign, name, act) {
    const node = made(parent, "button", { type: "button", title: name, "aria-label": name }, sign);
    node.addEventListener("click", act);
    return node;
  }

  // Takes other data; the view stays where it is if the new data are of the same length.
  show(data) {
    this.stop();
    this.data = data;
    this.selected = this.chain = this.range = null;
    this.sought = "";
    this.t = null;
    this.byId = data.panels.map(panel => new Map(panel.bars.map((bar, i) => [bar[0], i]).reverse()));
    this.svg.setAttribute("aria-label", data.words);
    this.words.textContent = data.words;
    this.lesson.textContent = data.lesson ?? "";
    this.status.textContent = "";
    this.all(data.begin);
  }

  // A picture may begin with the device's work. What came before is there for who zooms out, or presses All.
  get first() { return this.data.first ?? this.data.begin; }

  all(first = this.first) {
    const margin = 0.01 * (this.data.end - first);
    this.look(first - margin, this.data.end + margin);
  }

  look(a, b) {
    [this.a, this.b] = [a, b];
    this.draw();
  }

  zoom(factor, at = this.middle()) {
    const whole = 1.02 * (this.data.end - this.first);
    const size = clamp((this.b - this.a) * factor, whole / 1e5, whole);
    this.move(at - ((at - this.a) / (this.b - this.a)) * size, size);
  }

  move(a, size = this.b - this.a) {
    const margin = 0.01 * (this.data.end - this.first);
    const from = clamp(a, this.first - margin, this.data.end + margin - size);
    this.look(from, from + size);
  }

  middle() {
    const bar = this.selected && this.bar(this.selected);
    return bar ? (bar[1] + bar[2]) / 2 : (this.a + this.b) / 2;
  }

  bar([panel, index]) { return this.data.panels[panel].bars[index]; }

  // ---------------------------------------------------------------- drawing
  x(time) { return clamp((time - this.a) / (this.b - this.a), -1, 2) * this.inner; }

  draw() {
    if (!this.data) return;
    const width = clamp(this.root.clientWidth - 2, 320, 1200), { left, unit } = this.data;
    this.inner = width - left - RIGHT;
    let y = ABOVE;
    this.tops = [];
    const parts = this.data.panels.map((panel, number) => {
      this.tops.push(y);
      const part = `<g transform="translate(${left} ${y})"><svg width="${this.inner}" height="${panel.height * unit}" class="agt-inner">${this.bars(panel, number)}</svg>${this.frame(panel)}</g>`;
      y += panel.height * unit + AXIS + ABOVE;
      return part;
    });
    y += 6 - ABOVE;
    const legend = this.legend(y, width);
    this.svg.innerHTML = `<style>${this.data.style}</style><defs>${this.data.defs}</defs><rect class="agt-paper" width="100%" height="100%"/>${parts.join("")}${legend.text}`;
    this.svg.setAttribute("viewBox", `0 0 ${width} ${legend.bottom}`);
    this.svg.setAttribute("width", width);
    this.svg.setAttribute("height", legend.bottom);
    this.drawClock();
  }

  frame(panel) {
    const { unit, left } = this.data, tall = panel.height * unit;
    const text = (css, x, y, said) => `<text class="${css}" x="${x}" y="${y}">${escaped(said)}</text>`;
    const facts = panel.facts.filter(fact => fact !== this.data.low);
    if (panel.low) facts.push(this.data.low);
    while (facts.length > 1 && wide(facts.join("  ·  "), 11.5) > this.inner + left) facts.pop();
    let out = text("agt-title", 8 - left, -28, fitting(panel.title, this.inner + left, 17)) + text("agt-facts", 8 - left, -11, facts.join("  ·  "));
    for (const label of panel.labels) out += text(...label);
    if (panel.bars.length)
      for (const tick of ticks(this.a / panel.factor, this.b / panel.factor, this.inner / 70))
        if (this.x(tick * panel.factor) >= 0 && this.x(tick * panel.factor) <= this.inner)
          out += text("agt-tick", Math.min(this.x(tick * panel.factor), this.inner + RIGHT - wide(`${tick}`, 11) / 2).toFixed(1), tall + 14, tick);
    else out += text("agt-facts", 4, 18, panel.said);
    return out + `<path class="agt-rule" d="M0 ${tall}h${this.inner}"/>` + text("agt-axis", this.inner / 2, tall + 31, panel.axis);
  }

  bars(panel, number) {
    const { unit, looks } = this.data;
    let out = "", names = "", holes = "";
    const waits = new Map();
    for (const [i, ...wait] of panel.waits) waits.set(i, [...(waits.get(i) ?? []), wait]);
    for (const [y, height] of panel.bands)
      out += `<rect class="agt-band" y="${y * unit}" width="100%" height="${height * unit}"/>`;
    for (const tick of ticks(this.a / panel.factor, this.b / panel.factor, this.inner / 70))
      out += `<path class="agt-grid" d="M${this.x(tick * panel.factor).toFixed(1)} 0V${panel.height * unit}"/>`;
    for (const y of panel.separators) out += `<path class="agt-rule" d="M0 ${y * unit}h${this.inner}"/>`;
    for (const [start, end, y] of panel.rooms)
      if (end > this.a && start < this.b) out += `<path class="agt-room" d="M${this.x(start)} ${y * unit}H${this.x(end)}"/>`;
    this.stretches(panel, number).forEach(({ i, start, end, share, look, mark, chosen }) => {
      const [, , , y, height, , name] = panel.bars[i], from = this.x(start), to = this.x(end);
      const css = (mark === "out" && to - from < 6 ? "" : mark) + (share < 1 ? " low" : "");
      const paint = looks[look], tall = height * unit, high = Math.max(share * tall, LOWEST);
      const style = share < 1 ? `fill:${paint.low};stroke:none` : `fill:${paint.paint};stroke:${paint.line}`;
      out += `<rect class="agt-bar ${css}${chosen ? " chosen" : ""}" data-bar="${number}.${i}" style="${style}" x="${from.toFixed(1)}" y="${(y * unit + tall - high).toFixed(1)}" width="${Math.max(to - from, 0.5).toFixed(1)}" height="${high.toFixed(1)}"/>`;
      const [since, until] = roomIn(waits.get(i) ?? [], start, end), size = Math.min(11, 0.78 * tall);
      const shown = [Math.max(this.x(since), 0), Math.min(this.x(until), this.inner)];
      if (shown[1] - shown[0] < 2.5 * size || size < 6) return;
      const space = shown[1] - shown[0] - 2;
      const said = fitting(wide(name, size) > space ? name.split(": ").pop() : name, space, size);
      if (!said) return;
      const middle = (shown[0] + shown[1]) / 2, at = (y + height / 2) * unit, faded = css === "faded" || waits.has(i);
      const patch = faded ? "var(--agt-paper)" : paint.patch, room = Math.min(wide(said, size) + 4, shown[1] - shown[0] - 2);
      if (patch) names += `<rect class="agt-patch" x="${middle - room / 2}" y="${at - 0.6 * size}" width="${room}" height="${1.2 * size}" style="fill:${patch}"/>`;
      names += `<text class="agt-name" x="${middle}" y="${at + 0.35 * size}" style="fill:${faded ? "var(--agt-ink)" : paint.ink};font-size:${size}px">${escaped(said)}</text>`;
    });
    for (const [i, since, until] of panel.waits) {
      if (until < this.a || since > this.b) continue;
      const [, , , y, height] = panel.bars[i], from = this.x(since), to = this.x(until);
      holes += `<rect class="agt-paper agt-hole" x="${from}" y="${y * unit + 1}" width="${to - from}" height="${height * unit - 2}"/><path class="agt-room agt-hole" d="M${from} ${(y + height / 2) * unit}H${to}"/>`;
    }
    names = holes + names;
    if (this.range) {
      const [from, to] = this.range.map(time => this.x(time));
      names += `<rect class="agt-range" x="${Math.min(from, to)}" width="${Math.abs(to - from)}" y="0" height="100%"/>`;
    }
    return out + this.arrows(panel, number) + names + `<rect class="agt-veil" y="0" height="100%" width="0"/><path class="agt-clock"/>`;
  }

  // What is drawn of the bars in view: those below a pixel are gathered, and where they are close to each other
  // they are as high as they are busy. As in layout.py, but for any zoom.
  stretches(panel, number) {
    const pixel = (this.b - this.a) / this.inner, rows = new Map();
    const own = this.chain?.panel === number || this.selected?.[0] === number;
    panel.bars.forEach(([id, start, end, y, , look, , state, , given], i) => {
      if (end < this.a || start > this.b) return;
      const chosen = this.selected?.[0] === number && panel.bars[this.selected[1]][0] === id;
      const mark = this.chain && own ? (this.chain.ids.has(id) ? "out" : "faded") : this.sought && !this.matches(panel, i) ? "faded" : state;
      const row = rows.get(y) ?? [], last = row.at(-1), took = end - start, thin = took < pixel && !chosen;
      rows.set(y, row);
      if (thin && last?.thin && last.mark === mark && last.end - last.start < pixel && start - last.end < pixel) {
        last.busy += took * given;
        last.end = Math.max(last.end, end);
        if (took > last.longest) [last.longest, last.look] = [took, look];
      } else row.push({ i, start, end, look, mark, chosen, thin, longest: took, busy: took * given, share: thin ? 1 : given });
    });
    for (const row of rows.values())
      row.forEach((one, k) => {
        const apart = Math.min(k ? one.start - row[k - 1].end : Infinity, k + 1 < row.length ? row[k + 1].start - one.end : Infinity);
        if (one.thin && apart < CROWDED * pixel) one.share = Math.min(1, one.busy / Math.max(one.end - one.start, pixel));
      });
    const found = [...rows.values()].flat();
    panel.low = found.some(one => one.share < 1);
    return found;
  }

  arrows(panel, number) {
    const { unit } = this.data;
    let lines = "", halos = "";
    const add = ([points, fades]) => {
      if (Math.max(points[0][0], points.at(-1)[0]) < this.a || Math.min(points[0][0], points.at(-1)[0]) > this.b) return;
      const at = ([time, , px = 0]) => Math.max(this.x(time) + px, this.x(points[0][0])).toFixed(1);
      const path = "M" + points.map(point => `${at(point)} ${(point[1] * unit).toFixed(1)}`).join("L");
      const y = points.at(-1)[1], back = points.at(-2)[1] <= y ? -8 : 8;
      halos += `<path class="agt-halo" d="${path}"/>`;
      const css = fades ? " pale" : "";
      lines += `<path class="agt-arrow${css}" d="${path}"/><path class="agt-tip${css}" d="M${at(points.at(-1))} ${y * unit}l-5 ${back}h10z"/>`;
    };
    panel.arrows.forEach(add);
    if (this.chain?.panel === number)
      for (const [before, after] of this.chain.links) {
        const b = panel.bars[before], a = panel.bars[after], down = b[3] < a[3];
        if (b[3] !== a[3]) add([[[b[2], b[3] + b[4] / 2], [Math.max(a[1], b[2]), b[3] + b[4] / 2], [Math.max(a[1], b[2]), down ? a[3] : a[3] + a[4]]]]);
      }
    return halos + lines;
  }

  legend(y, width) {
    let x = this.data.left, text = "";
    for (const [css, paint, line, words] of this.data.legend) {
      const room = 44 + wide(words, 11);
      if (x > this.data.left && x + room > width) [x, y] = [this.data.left, y + ROW];
      text += css
        ? `<path class="${css}" d="M${x} ${y + 6}h24"/>`
        : `<rect class="agt-bar" x="${x}" y="${y}" width="24" height="12" style="fill:${paint};stroke:${line}"/>`;
      text += `<text class="agt-words" x="${x + 29}" y="${y + 10}">${escaped(words)}</text>`;
      x += room;
    }
    return { text, bottom: y + ROW + 8 };
  }

  // ---------------------------------------------------------------- the clock
  setClock(time) {
    this.t = time;
    this.drawClock();
  }

  drawClock() {
    const on = this.t !== null && this.t !== undefined;
    this.svg.querySelectorAll(".agt-inner").forEach((inner, number) => {
      const x = on ? this.x(this.t) : this.inner, veil = inner.querySelector(".agt-veil");
      veil.setAttribute("x", x);
      veil.setAttribute("width", on ? Math.max(this.inner - x, 0) : 0);
      inner.querySelector(".agt-clock").setAttribute("d", on ? `M${x} 0V${this.data.panels[number].height * this.data.unit}` : "");
    });
    if (!on) { this.time.textContent = ""; this.slider.value = 1000; return; }
    this.slider.value = ((this.t - this.a) / (this.b - this.a)) * 1000;
    this.time.textContent = `${this.t.toFixed(1)} µs`;
    this.slider.setAttribute("aria-valuetext", this.time.textContent);
    const running = this.data.panels.map(panel => {
      const found = panel.bars.filter(bar => bar[1] <= this.t && this.t < bar[2] && !bar[8].startsWith("co")).map(bar => `${bar[8]}: ${bar[6]}`);
      return [...new Set(found)].slice(0, 8).join(", ") || "nothing runs";
    });
    this.status.textContent = running.map((said, i) => (running.length > 1 ? `${this.data.panels[i].title}: ` : "") + said).join("\n");
  }

  toggle() { this.frameAsked ? this.stop() : this.start(); }

  start() {
    if (this.t === null || this.t >= this.b) this.t = this.a;
    this.status.setAttribute("aria-live", "off"); // nobody wants to hear every frame
    this.play.textContent = "Pause";
    let before = null;
    const step = now => {
      if (before !== null) this.setClock(Math.min(this.t + ((now - before) / SWEEP) * (this.b - this.a), this.b));
      before = now;
      this.frameAsked = this.t < this.b ? requestAnimationFrame(step) : this.stop();
    };
    this.frameAsked = requestAnimationFrame(step);
  }

  stop() {
    if (this.frameAsked) cancelAnimationFrame(this.frameAsked);
    this.frameAsked = null;
    this.play.textContent = "Play";
    this.status.setAttribute("aria-live", "polite");
    return null;
  }

  // ---------------------------------------------------------------- choosing
  select(which) {
    this.stop();
    this.selected = which;
    this.chain = this.t = null;
    if (which) {
      const bar = this.bar(which);
      this.status.textContent = this.data.panels[which[0]].tips[which[1]];
      if (bar[2] < this.a || bar[1] > this.b) this.move((bar[1] + bar[2] - this.b + this.a) / 2);
    } else this.status.textContent = "";
    this.draw();
  }

  // From the chosen bar back: at each the one, of those it had to wait for, that ended last.
  toggleChain() {
    if (this.chain) { this.chain = null; this.draw(); return; }
    if (!this.selected) this.selectLast();
    if (!this.selected) return;
    const [number, index] = this.selected, panel = this.data.panels[number], known = this.byId[number];
    const path = [index], ids = new Set([panel.bars[index][0]]), links = [];
    for (;;) {
      const now = panel.bars[path.at(-1)];
      let before = (panel.after[now[0]] ?? []).filter(id => known.has(id) && !ids.has(id)).map(id => known.get(id));
      if (!before.length && now[8] === "host") // a call comes after what the host did before
        before = panel.bars.map((bar, i) => i).filter(i => panel.bars[i][8] === "host" && panel.bars[i][2] <= now[1] && panel.bars[i][3] === now[3] && !ids.has(panel.bars[i][0]));
      if (!before.length) break;
      const binding = before.reduce((one, other) => (panel.bars[other][2] > panel.bars[one][2] ? other : one));
      links.push([binding, path.at(-1)]);
      path.push(binding);
      ids.add(panel.bars[binding][0]);
    }
    this.chain = { panel: number, ids, links };
    const told = path.slice(0, 12).map(i => `${panel.bars[i][6]} (${panel.bars[i][8]})`);
    this.status.textContent = `${path.length} in the chain: ${told.join(" ← ")}${path.length > 12 ? " ← …" : ""}`;
    this.draw();
  }

  // Nothing is later than the end, so the chain of the last bar is the critical path.
  selectLast() {
    const all = this.data.panels.flatMap((panel, p) => panel.bars.map((bar, i) => [p, i]));
    if (all.length) this.select(all.reduce((one, other) => (this.bar(other)[2] > this.bar(one)[2] ? other : one)));
  }

  // ---------------------------------------------------------------- a range, and its sums
  toggleRange(on = this.ranging.getAttribute("aria-pressed") !== "true") {
    this.ranging.setAttribute("aria-pressed", on);
    if (!on) this.setRange(null);
    else if (!this.range) this.status.textContent = "Drag over the timeline; by keyboard, [ and ] at the clock or at the selected bar.";
  }

  setRange(range) {
    this.range = range;
    this.draw();
    if (range) this.status.textContent = this.sums(Math.min(...range), Math.max(...range));
  }

  edge(which) {
    const bar = this.selected && this.bar(this.selected), at = this.t ?? (bar ? bar[which + 1] : [this.a, this.b][which]);
    const range = this.range ? [...this.range] : [this.a, this.b];
    range[which] = at;
    this.setRange(range);
  }

  // By lane how long it was busy: bars of one lane may overlap. By name the sum of the parts within the range.
  sums(from, to) {
    const lines = [`${from.toFixed(1)} to ${to.toFixed(1)} µs: ${(to - from).toFixed(1)} µs`];
    for (const panel of this.data.panels) {
      const lanes = new Map(), names = new Map();
      for (const [, start, end, , , , name, , lane] of [...panel.bars].sort((one, other) => one[1] - other[1])) {
        const begin = Math.max(start, from), until = Math.min(end, to);
        if (until <= begin || lane.startsWith("co")) continue;
        const [busy, last] = lanes.get(lane) ?? [0, from];
        lanes.set(lane, [busy + Math.max(until - Math.max(begin, last), 0), Math.max(last, until)]);
        names.set(name, (names.get(name) ?? 0) + until - begin);
      }
      const told = [...lanes].map(([lane, [busy]]) => `${lane} ${busy.toFixed(1)} (${((100 * busy) / (to - from)).toFixed(0)} %)`);
      const most = [...names].sort((one, other) => other[1] - one[1]).slice(0, 6).map(([name, sum]) => `${name} ${sum.toFixed(1)}`);
      lines.push(`${this.data.panels.length > 1 ? `${panel.title}: ` : ""}${told.join(", ") || "nothing runs"}`, ...(most.length ? [`  ${most.join(", ")}`] : []));
    }
    return lines.join("\n");
  }

  // ---------------------------------------------------------------- finding, and saving
  matches(panel, i) { return `${panel.bars[i][6]} ${panel.tips[i].split("\n")[0]}`.toLowerCase().includes(this.sought); }

  find(text) {
    this.sought = text.trim().toLowerCase();
    this.draw();
    const all = this.data.panels.flatMap((panel, p) => panel.bars.map((bar, i) => [p, i]));
    this.found = this.sought ? all.filter(([p, i]) => this.matches(this.data.panels[p], i)) : [];
    this.status.textContent = this.sought ? `${this.found.length} of ${all.length} spans. Enter: go to the next one` : "";
  }

  next() {
    if (!this.found?.length) return;
    const now = this.found.findIndex(([p, i]) => p === this.selected?.[0] && i === this.selected?.[1]);
    this.select(this.found[(now + 1) % this.found.length]);
  }

  // As it is to be seen now, in the page's colours, which a file by itself could not know.
  save() {
    const copy = this.svg.cloneNode(true), colours = getComputedStyle(this.svg);
    copy.querySelectorAll(".agt-veil, .agt-clock, .agt-range").forEach(node => node.remove());
    for (const name of new Set(this.data.style.match(/--agt-\w+/g))) copy.style.setProperty(name, colours.getPropertyValue(name));
    const file = new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" });
    const link = made(this.root, "a", { href: URL.createObjectURL(file), download: "timeline.svg", hidden: "" });
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    this.status.textContent = "Saved as timeline.svg";
  }

  neighbour(along, across) {
    const lanes = []; // [panel, y of the row], from top to bottom
    this.data.panels.forEach((panel, p) => [...new Set(panel.bars.map(bar => bar[3]))].sort((x, y) => x - y).forEach(y => lanes.push([p, y])));
    if (!lanes.length) return;
    const now = this.selected && this.bar(this.selected);
    let lane = now ? lanes.findIndex(([p, y]) => p === this.selected[0] && y === now[3]) : 0;
    lane = clamp(lane + across, 0, lanes.length - 1);
    const [panel, y] = lanes[lane];
    const row = this.data.panels[panel].bars.map((bar, i) => [bar, i]).filter(([bar]) => bar[3] === y).sort((x, z) => x[0][1] - z[0][1]);
    let at = row.findIndex(([, i]) => now && panel === this.selected[0] && i === this.selected[1]);
    if (at < 0) at = now ? row.reduce((best, [bar], i) => (Math.abs(bar[1] - now[1]) < Math.abs(row[best][0][1] - now[1]) ? i : best), 0) : 0;
    else at = clamp(at + along, 0, row.length - 1);
    this.select([panel, row[at][1]]);
  }

  // ---------------------------------------------------------------- mouse and keyboard
  listen() {
    const at = event => event.target.closest?.("[data-bar]")?.dataset.bar?.split(".").map(Number);
    const time = event => this.a + ((event.clientX - this.svg.getBoundingClientRect().left - this.data.left) / this.inner) * (this.b - this.a);
    let grip = null;
    this.svg.addEventListener("pointerdown", event => {
      const ranging = event.shiftKey || this.ranging.getAttribute("aria-pressed") === "true";
      grip = { x: event.clientX, a: this.a, moved: false, from: ranging ? time(event) : null };
    });
    this.svg.addEventListener("pointermove", event => {
      if (grip && event.buttons === 1 && (grip.moved || Math.abs(event.clientX - grip.x) > 3)) {
        grip.moved = true;
        this.tip.hidden = true;
        if (grip.from !== null) { this.setRange([grip.from, time(event)]); return; }
        this.move(grip.a - ((event.clientX - grip.x) / this.inner) * (this.b - this.a));
        return;
      }
      const found = at(event);
      this.tip.hidden = !found;
      if (!found) return;
      const box = this.root.getBoundingClientRect();
      this.tip.textContent = this.data.panels[found[0]].tips[found[1]];
      this.tip.style.left = `${clamp(event.clientX - box.left + 14, 0, Math.max(box.width - this.tip.offsetWidth - 4, 0))}px`;
      this.tip.style.top = `${event.clientY - box.top + 16}px`;
    });
    this.svg.addEventListener("pointerleave", () => { this.tip.hidden = true; });
    this.svg.addEventListener("pointerup", event => {
      if (grip && !grip.moved) this.select(at(event) ?? null);
      grip = null;
    });
    this.svg.addEventListener("wheel", event => {
      if (!event.ctrlKey && !event.metaKey) return; // the page scrolls
      event.preventDefault();
      this.zoom(event.deltaY > 0 ? 1.25 : 0.8, time(event));
    }, { passive: false });
    this.root.addEventListener("keydown", event => { // also from a button: whatever was chosen, nothing is now
      if (event.key === "Escape") { this.toggleRange(false); this.select(null); }
    });
    this.svg.addEventListener("keydown", event => {
      const quarter = (this.b - this.a) / 4;
      const act = {
        ArrowLeft: () => (event.shiftKey ? this.move(this.a - quarter) : this.neighbour(-1, 0)),
        ArrowRight: () => (event.shiftKey ? this.move(this.a + quarter) : this.neighbour(1, 0)),
        ArrowUp: () => this.neighbour(0, -1), ArrowDown: () => this.neighbour(0, 1),
        "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2), 0: () => this.all(),
        " ": () => this.toggle(), Enter: () => this.toggleChain(), c: () => this.toggleChain(),
        "[": () => this.edge(0), "]": () => this.edge(1),
      }[event.key];
      if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      act();
    });
  }

  end() {
    this.stop();
    this.observer.disconnect();
  }
}

// ------------------------------------------------------------------ what Python asks for
const VIEWS = {
  timeline(data, el, model) {
    const view = new Timeline(el);
    view.show(data);
    const again = () => view.show(model.get("view"));
    model.on?.("change:view", again); // a site's page has no kernel that could send another
    return () => { model.off?.("change:view", again); view.end(); };
  },

  // The threads of a launch, step by step; one of them can be picked by a click or by its number.
  threads(data, el) {
    const root = room(el, "agt agt-live agt-threads");
    const picture = made(root, "div", { tabindex: 0, role: "group", "aria-label": data.words });
    picture.innerHTML = data.svg;
    const over = picture.querySelector(".agt-over"), svg = picture.querySelector("svg");
    const bar = made(root, "div", { class: "agt-controls" });
    const button = (sign, name, act) => made(bar, "button", { type: "button", "aria-label": name }, sign).addEventListener("click", act);
    button("Play", "Play", () => (timer ? stop() : play()));
    button("◀", "Step back", () => go(now - 1));
    const slider = made(bar, "input", { type: "range", min: 0, max: Math.max(data.steps.length - 1, 0), value: 0, "aria-label": "step" });
    button("▶", "Step", () => go(now + 1));
    if (data.steps.length < 2) for (const control of bar.children) control.hidden = true; // one step leads nowhere
    made(bar, "label", {}, "thread ");
    const field = made(bar, "input", { type: "text", value: "", "aria-label": "thread, by number", placeholder: "all" });
    const said = made(root, "div", { class: "agt-status", "aria-live": "polite" });
    if (data.lesson) made(root, "p", { class: "agt-lesson" }, data.lesson);
    const code = made(root, "pre", { class: "agt-source", tabindex: 0 });
    const lines = data.source.map((line, i) => made(code, "div", {}, `${String(i + 1).padStart(3)} ${line}`));
    let now = 0, picked = null, timer = null;
    const place = (i, [x, y]) => `(${i % x}, ${Math.floor(i / x) % y}, ${Math.floor(i / (x * y))})`;
    const own = data.block[0] * data.block[1] * data.block[2];
    const name = i => `block ${place(Math.floor(i / own), data.grid)}, thread ${place(i % own, data.block)}`;
    const draw = () => {
      const step = data.steps[now];
      slider.value = now;
      lines.forEach((line, i) => line.classList.toggle("now", i + 1 === step?.line));
      if (!step) { said.textContent = data.words; return; }
      const last = data.fault && now === data.steps.length - 1 ? `\n${data.fault}` : "";
      over.innerHTML = step.over;
      let told = step.told + last;
      if (picked !== null) {
        over.querySelectorAll(".agt-link").forEach(link => link.remove());
        const [x, y] = data.at[picked], mine = step.threads.indexOf(picked);
        let drawn = `<rect class="agt-picked" x="${x}" y="${y}" width="${data.size}" height="${data.size}"/>`;
        if (mine >= 0) {
          const [a, b, c, d] = step.links[mine];
          drawn += `<path class="agt-wrong-link" d="M${a} ${b}L${c} ${d}"/><circle class="agt-wrong" cx="${c}" cy="${d}" r="3"/>`;
        }
        over.innerHTML += drawn;
        told += `\n${name(picked)} ${mine >= 0 ? `${step.verb} ${step.array}[${step.elements[mine]}]` : "is idle"}`;
      }
      said.textContent = told;
    };
    const stop = () => { clearInterval(timer); timer = null; };
    const go = step => { now = clamp(step, 0, Math.max(data.steps.length - 1, 0)); draw(); };
    const play = () => {
      if (now >= data.steps.length - 1) now = -1;
      go(now + 1);
      timer = setInterval(() => (now < data.steps.length - 1 ? go(now + 1) : stop()), 900);
    };
    const pick = thread => { picked = thread; field.value = thread ?? ""; draw(); };
    slider.addEventListener("input", () => { stop(); go(+slider.value); });
    field.addEventListener("change", () => {
      const number = parseInt(field.value, 10);
      pick(number >= 0 && number < data.at.length ? number : null);
    });
    picture.addEventListener("click", event => {
      const box = svg.getBoundingClientRect(), scale = svg.viewBox.baseVal.width / box.width;
      const x = (event.clientX - box.left) * scale, y = (event.clientY - box.top) * scale;
      const found = data.at.findIndex(([a, b]) => x >= a && x < a + data.size && y >= b && y < b + data.size);
      pick(found < 0 ? null : found);
    });
    picture.addEventListener("keydown", event => {
      const act = {
        ArrowRight: () => go(now + 1), ArrowLeft: () => go(now - 1), Home: () => go(0), End: () => go(data.steps.length - 1),
        ArrowDown: () => pick(Math.min((picked ?? -1) + 1, data.at.length - 1)), ArrowUp: () => pick(Math.max((picked ?? 1) - 1, 0)),
        " ": () => (timer ? stop() : play()), Escape: () => { stop(); pick(null); },
      }[event.key];
      if (!act) return;
      event.preventDefault();
      act();
    });
    draw();
    return stop;
  },
};

export default {
  render({ model, el }) {
    const data = model.get("view");
    return VIEWS[data.view](data, el, model);
  },
};
