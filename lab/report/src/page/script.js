(function () {
  "use strict";
  var root = document.documentElement;
  var button = document.getElementById("theme");
  var system = window.matchMedia("(prefers-color-scheme: dark)");
  function stored() { try { return localStorage.getItem("shoal-lab-theme"); } catch (e) { return null; } }
  function store(value) { try { localStorage.setItem("shoal-lab-theme", value); } catch (e) { /* a page without storage */ } }
  function isDark() {
    var chosen = root.getAttribute("data-theme");
    return chosen ? chosen === "dark" : system.matches;
  }
  function name() { if (button) { button.textContent = isDark() ? "Light" : "Dark"; } }
  var before = stored();
  if (before === "dark" || before === "light") { root.setAttribute("data-theme", before); }
  if (button) {
    button.hidden = false;
    button.addEventListener("click", function () {
      var next = isDark() ? "light" : "dark";
      root.setAttribute("data-theme", next);
      store(next);
      name();
    });
  }
  if (system.addEventListener) { system.addEventListener("change", name); }
  name();
}());
