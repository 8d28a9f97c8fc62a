// Reward weights without a kernel: every stop of a slider has a frame that was made beforehand.
"use strict";
for (const root of document.querySelectorAll(".al-frames:not([data-live])")) {
  root.dataset.live = "";
  const bytes = Uint8Array.from(atob(root.querySelector(".al-packed").textContent), (c) => c.charCodeAt(0));
  const unpacked = new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).json();
  const sliders = [...root.querySelectorAll("input[type=range]")];
  const label = (s) => { s.nextElementSibling.textContent = s.dataset.stops.split("|")[s.value]; };
  let wanted = null;

  async function show(frame, moved) {
    wanted = frame;
    for (const s of sliders) {
      if (s !== moved) s.value = s.dataset.first;
      label(s);
    }
    for (const b of root.querySelectorAll("button[data-frame]")) b.classList.toggle("on", Number(b.dataset.frame) === frame);
    const parts = await unpacked;
    if (wanted !== frame) return;
    for (const place of root.querySelectorAll("[data-part]")) {
      const { texts, frames } = parts[place.dataset.part];
      if (place.dataset.text === String(frames[frame])) continue;
      place.dataset.text = frames[frame];
      place.innerHTML = texts[frames[frame]]; // made by anthrolab, with all text escaped
    }
    root.dataset.frame = frame;
  }

  for (const s of sliders) s.addEventListener("input", () => show(Number(s.dataset.offset) + Number(s.value), s));
  for (const b of root.querySelectorAll("button[data-frame]")) b.addEventListener("click", () => show(Number(b.dataset.frame), null));
}
