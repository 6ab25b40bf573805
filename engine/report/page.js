"use strict";
(function () {
  const root = document.documentElement;
  root.classList.add("scripted");
  const details = () => document.querySelectorAll(".source details");
  const lines = document.querySelectorAll(".source .line");
  const filters = document.querySelectorAll("button[data-filter]");
  for (const button of filters) {
    button.addEventListener("click", () => {
      const on = button.getAttribute("aria-pressed") !== "true";
      for (const other of filters) other.setAttribute("aria-pressed", String(other === button && on));
      root.classList.toggle("faded", on);
      for (const line of lines) line.classList.toggle("shown", on && line.classList.contains(button.dataset.filter));
    });
  }
  document.getElementById("open-all").addEventListener("click", () => {
    const open = [...details()].some((one) => !one.open);
    for (const one of details()) one.open = open;
  });
  document.getElementById("theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark"
      : window.matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });
  const show = () => {
    const line = location.hash.startsWith("#L") && document.getElementById(location.hash.slice(1));
    const detail = line && line.querySelector("details");
    if (detail) detail.open = true;
  };
  window.addEventListener("hashchange", show);
  show();
})();
