// The failure explorer of a page: pick, search, read, two cases side by side. All text goes in as text, never as HTML.
"use strict";
(() => {
  const { head, cases } = JSON.parse(document.getElementById("data").textContent);
  const FACETS = ["source", "system", "category", "role", "dimension", "checkbox", "gate"];
  const BLIND = { dimension: ["checkbox", "gate"], checkbox: ["gate"], gate: ["checkbox", "dimension"] };
  const SHOWN = 500;
  const asked = {};
  let words = [], current = null, beside = "";

  function el(tag, cls, ...inside) {
    const made = document.createElement(tag);
    if (cls) made.className = cls;
    made.append(...inside.filter((x) => x !== null && x !== undefined && x !== false));
    return made;
  }
  const zh = (tag, cls, text) => { const e = el(tag, cls, text); e.lang = "zh"; return e; };

  // Every failure with what the pickers and the search look at.
  const rows = [];
  for (const c of cases) {
    const said = new Map((c.chat ? c.chat.bubbles : []).filter((b) => b.index !== null).map((b) => [b.index, b.text]));
    for (const [byGate, id, turn, index, reason] of c.fails) {
      const isBox = /\.\d+$/.test(id);
      rows.push({
        c, id, turn, index, reason, byGate, source: head.sources[c.number].name, system: c.system, category: c.category, role: c.role,
        dimension: isBox ? id.replace(/\.\d+$/, "") : undefined, checkbox: isBox ? id : undefined, gate: isBox ? undefined : id,
        text: [said.get(index), reason, c.names, c.system, c.case_id].join("\n").toLowerCase(),
      });
    }
  }
  const fits = (row, without) => FACETS.every((f) => !asked[f] || without.includes(f) || row[f] === asked[f]);

  function order(a, b) {
    const category = head.categories.indexOf(a) - head.categories.indexOf(b);
    if (category) return category;
    const [, x, i] = /^(.*?)(?:\.(\d+))?$/.exec(a), [, y, j] = /^(.*?)(?:\.(\d+))?$/.exec(b);
    return x < y ? -1 : x > y ? 1 : (i || 0) - (j || 0);
  }

  // A ledger alone does not say how its checkboxes are worded.
  const worded = (source) => (source && !head.sources.find((s) => s.name === source).worded ? head.constraints : head.texts);

  function offer(select, options, value) {
    select.replaceChildren(...options.map(([text, key]) => { const o = el("option", "", text); o.value = key; return o; }));
    select.value = value;
  }

  function found() {
    const searched = rows.filter((r) => words.every((w) => r.text.includes(w)));
    for (const f of FACETS) {
      const counts = new Map();
      let any = 0;
      for (const r of searched) {
        if (r[f] === undefined || !fits(r, [f, ...(BLIND[f] || [])])) continue;
        counts.set(r[f], (counts.get(r[f]) || 0) + 1);
        any++;
      }
      if (asked[f] && !counts.has(asked[f])) counts.set(asked[f], 0);
      const values = [...counts.keys()];
      if (f !== "source" && f !== "system") values.sort(order);
      offer(pick[f], [[`any (${any})`, ""], ...values.map((v) => [`${v} (${counts.get(v)})${worded(asked.source)[v] ? " " + worded(asked.source)[v] : ""}`, v])], asked[f] || "");
    }
    const byCase = new Map();
    for (const r of searched) if (fits(r, [])) byCase.has(r.c) ? byCase.get(r.c).push(r) : byCase.set(r.c, [r]);
    return byCase;
  }

  let byCase = new Map();
  const key = (c) => [c.number, c.system, c.sample].join("|");
  const where = (c) => [head.sources[c.number].name, c.case_id, c.category, c.role && `role ${c.role}`, c.sample && `sample ${c.sample}`,
    !c.valid && c.state].filter(Boolean).join(" · ");

  // Of the pickers only source and system narrow the plan, and cases that are left out are counted too.
  function planned() {
    const own = head.planned.filter(([n, system]) => (!asked.source || head.sources[n].name === asked.source) && (!asked.system || system === asked.system));
    const sum = (some) => some.reduce((n, one) => n + one[3], 0);
    return `${sum(own)} planned cases (${head.states.slice(1).map((s) => `${sum(own.filter((one) => one[2] === s))} ${s}`).join(", ")})`;
  }

  function refresh() {
    byCase = found();
    const there = [...byCase.keys()];
    if (!byCase.has(current)) current = there[0] || null;
    const failures = there.reduce((n, c) => n + byCase.get(c).length, 0);
    count.textContent = `${failures} failures in ${there.length} of ${planned()}` + (there.length > SHOWN ? `; the list has the first ${SHOWN}, so narrow it` : "");
    offer(list, there.slice(0, SHOWN).map((c) => {
      const ids = [...new Set(byCase.get(c).map((r) => r.id))].sort();
      const more = ids.length > 8 ? ` and ${ids.length - 8} more` : "";
      return [`${c.case_id}${c.sample ? " #" + c.sample : ""} · ${c.category} · ${c.system}${head.sources.length > 1 ? " · " + head.sources[c.number].name : ""} · ${byCase.get(c).length} failed: ${ids.slice(0, 8).join(", ")}${more}`, cases.indexOf(c)];
    }), cases.indexOf(current));
    show();
  }

  function show() {
    if (!current) return shown.replaceChildren(el("p", "", "No failure matches these filters."));
    const same = cases.filter((c) => c !== current && c.case_id === current.case_id);
    const other = same.find((c) => key(c) === beside);
    offer(next, [[beside && !other ? "nothing: this case has no such" : "nothing", ""], ...same.map((c) => [
      `${c.system} · ${head.sources[c.number].name}${c.sample || current.sample ? " · sample " + c.sample : ""}: ` +
      (c.valid ? `${c.fails.length} failures` : c.state), key(c)])], other ? beside : "");
    const marks = byCase.get(current);
    const ids = new Set(marks.map((r) => r.id));
    const panes = [pane(current, (id, index) => marks.some((r) => r.id === id && r.index === index))];
    if (other) panes.push(pane(other, (id) => ids.has(id)));
    const judges = other && other.judge !== current.judge && "Seen by two judges: what fails on one side only may be the judge's doing.";
    shown.replaceChildren(...(judges ? [el("p", "al-judges", judges)] : []), el("div", "al-panes", ...panes));
  }

  function finding(id, text, reason, by, partner, marked, hint) {
    return el("li", (partner ? "partner-fault" : "fault") + (marked ? " chosen" : ""), el("b", "", id), " ", text || "",
      partner && el("i", "", " (partner's fault, not counted)"),
      reason && el("span", "reason", el("span", "by", `${by}: `), zh("span", "", reason)),
      hint && el("span", "reason", el("span", "by", "suggested repair: "), zh("span", "", hint)));
  }

  function findingsAt(c, index, marked) {
    const judge = head.sources[c.number].judge;
    const own = c.fails.filter((f) => f[3] === index).map(([byGate, id, , , reason]) =>
      finding(id, head.texts[id], reason, byGate ? "gate" : judge, false, marked(id, index), head.hints[c.number][id]));
    const extra = (c.chat ? c.chat.extra : []).filter((f) => f[1] === index).map(([id, , text, reason, by, partner]) => finding(id, text, reason, by, partner, false));
    return own.length + extra.length ? el("ul", "findings", ...own, ...extra) : null;
  }

  function line(c, b, marked) {
    const findings = b.index === null ? null : findingsAt(c, b.index, marked);
    const hit = findings && findings.querySelector(".chosen");
    const tag = (text) => el("span", "tag", text);
    return el("div", `line ${b.tested ? "right" : "left"}${b.unsent ? " unsent" : ""}${hit ? " marked" : ""}`,
      el("div", "meta", zh("span", "", b.name), " ", el("time", "", b.at), " ", b.opener && tag("opener, given"), b.turn && el("span", "turn", ` turn ${b.turn} `),
        b.kept && tag(`draft kept through ${b.kept} message${b.kept > 1 ? "s" : ""}`), b.unsent && tag(b.unsent)),
      zh("div", "bubble", b.text), b.became !== undefined && el("div", "became", "became ", zh("span", "", b.became)), findings);
  }

  function fold(cls, title, items) {
    return items.length ? el("details", cls, el("summary", "", title), ...items) : null;
  }

  function pane(c, marked) {
    const top = el("header", "", el("b", "", c.system), " ", el("span", "where", where(c)));
    const made = el("section", "al-pane", top);
    const chat = c.chat;
    if (!chat) {
      const note = head.sources[c.number].note;
      made.append(el("p", "why", note || (c.state === "not done" ? "not done yet" : "this chat is left out to keep the file small")));
      made.append(el("div", "dialogue", el("div", "below", findingsAtAll(c, marked) || "Nothing failed.")));
      return made;
    }
    const summary = el("summary", "", zh("span", "", chat.title), " ", el("span", chat.good ? "outcome" : "outcome bad", chat.outcome));
    const people = el("p", "people", el("span", "tag tested-tag", "tested side, right"), " ", zh("span", "", chat.tested), " ",
      el("span", "tag", "partner, left"), " ", zh("span", "", chat.partner), chat.relationship && zh("span", "quiet", chat.relationship));
    const notes = fold("notes", `memories and summaries: ${chat.notes.length}`, chat.notes.flatMap(([title, lines]) =>
      [el("p", "", zh("b", "", title)), el("ul", "", ...lines.map(([kind, text]) => el("li", "", el("span", "by", `${kind}: `), zh("span", "", text))))]));
    const below = findingsAt(c, null, marked);
    const silences = fold("silences", `${chat.silences.length} decisions without a message`, [el("ul", "", ...chat.silences.map((s) => zh("li", "", s)))]);
    const details = el("details", "dialogue", summary, people, notes, el("div", "chat", el("div", "day", chat.day), ...chat.bubbles.map((b) => line(c, b, marked))),
      below && el("div", "below", el("b", "", "Of the whole dialogue"), below), chat.silences.length ? silences : null);
    details.open = true;
    made.append(details);
    return made;
  }

  function findingsAtAll(c, marked) {
    const judge = head.sources[c.number].judge;
    const items = c.fails.map(([byGate, id, turn, index, reason]) =>
      finding(id, (turn ? `turn ${turn} ` : "") + (worded(head.sources[c.number].name)[id] || ""), reason, byGate ? "gate" : judge, false, marked(id, index)));
    return items.length ? el("ul", "findings", ...items) : null;
  }

  function download() {
    const lines = [...byCase].filter(([c]) => head.sources[c.number].playable).map(([c, failed]) => JSON.stringify({
      run: c.run ?? null, system: c.system, case_id: c.case_id, sample: c.sample, dialogue_id: c.dialogue_id ?? null, judge: c.judge ?? null,
      ids: [...new Set(failed.map((r) => r.id))].sort(), note: "",
    }) + "\n");
    const link = el("a");
    link.href = URL.createObjectURL(new Blob(lines, { type: "application/x-ndjson" }));
    link.download = "selection.jsonl";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  const pick = {};
  const pickers = el("div", "pickers");
  for (const f of FACETS) {
    pick[f] = el("select", `pick-${f}`);
    pick[f].addEventListener("change", () => {
      asked[f] = pick[f].value;
      if (asked[f] && f === "gate") asked.checkbox = asked.dimension = "";
      if (asked[f] && (f === "checkbox" || f === "dimension")) asked.gate = "";
      if (f === "dimension" && asked[f] && asked.checkbox && !asked.checkbox.startsWith(asked[f] + ".")) asked.checkbox = "";
      refresh();
    });
    const label = el("label", "", el("span", "", f[0].toUpperCase() + f.slice(1)), pick[f]);
    label.hidden = f === "source" && head.sources.length < 2;
    pickers.append(label);
  }
  const search = el("input", "search");
  search.placeholder = "words in message, reason or names";
  search.addEventListener("input", () => { words = search.value.toLowerCase().split(/\s+/).filter(Boolean); refresh(); });
  pickers.append(el("label", "", el("span", "", "Search"), search));
  const count = el("span", "count"), list = el("select", "list"), next = el("select", "beside"), shown = el("div", "shown");
  list.size = 9;
  list.setAttribute("aria-label", "failing cases");
  list.addEventListener("change", () => { current = cases[Number(list.value)]; show(); });
  next.addEventListener("change", () => { beside = next.value; show(); });
  const save = el("button", "save", "Save found cases as a selection file");
  save.addEventListener("click", download);
  document.getElementById("app").append(pickers, el("p", "", count), list, el("div", "under", el("label", "", "Beside: ", next), save), shown);
  refresh();
})();
