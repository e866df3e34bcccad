// Timelines of the site are live without a kernel: their data stand beside the still picture, which stays where
// no script runs. What is far below is drawn when one comes near it.
import live from "./live.js";

function begin(room) {
  const view = JSON.parse(room.querySelector("script").textContent);
  const el = document.createElement("div");
  room.replaceChildren(el);
  live.render({ model: { get: () => view }, el });
}

const near = new IntersectionObserver(seen => {
  for (const { isIntersecting, target } of seen) if (isIntersecting) { near.unobserve(target); begin(target); }
}, { rootMargin: "600px" });
document.querySelectorAll(".agt-on-page").forEach(room => near.observe(room));

// Whoever has no mouse scrolls with the arrow keys, and for that a block has to take the focus.
const scrolling = () => document.querySelectorAll("pre, .output, .table-wrapper, div[style*='overflow-x']").forEach(block => {
  if (block.scrollWidth > block.clientWidth) block.tabIndex = 0;
});
scrolling();
addEventListener("resize", scrolling);
