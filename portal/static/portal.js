// Two things need a script: to tell by the reader's clock how old a page is, and to search.
"use strict";
(function () {
  var top = document.currentScript.src.replace(/static\/portal\.js.*$/, "");

  function text(name, words, kind) {
    var made = document.createElement(name);
    if (words !== undefined) made.textContent = words;
    if (kind) made.className = kind;
    return made;
  }

  function utc(iso) { return iso.slice(0, 10) + " " + iso.slice(11, 16) + " UTC"; }

  function age(seconds) {
    var units = [[86400, "day"], [3600, "hour"], [60, "minute"]];
    for (var i = 0; i < units.length; i++) {
      var count = Math.floor(seconds / units[i][0]);
      if (count >= 1) return count + " " + units[i][1] + (count === 1 ? "" : "s");
    }
    return "less than a minute";
  }

  // Time of the build and of the last watcher run: every build writes as-of.js again.
  function told() {
    var facts = window.dqAsOf;
    var banner = document.getElementById("stale"), line = document.getElementById("as-of");
    if (!banner) return;
    var said = "";
    if (!facts) {
      said = "Age of this page unknown: as-of.js is missing. Do not rely on it.";
    } else if (!facts.heard) {
      said = "No watcher has run yet: delivery status is unknown.";
    } else {
      var silent = Date.now() / 1000 - Date.parse(facts.heard) / 1000;
      if (silent < -2 * facts.tick) {
        said = "Clocks disagree: the last watcher run, " + utc(facts.heard) + ", is in the future by this clock." +
          " Age of this page unknown.";
      } else if (silent > 2 * facts.tick) {
        said = "Out of date: the watcher last ran " + utc(facts.heard) + ", " + age(silent) +
          " ago. Status since then is unknown.";
      }
      if (line) {
        line.textContent = "As of " + utc(facts.built) + ". The watcher last ran " + utc(facts.heard) + ".";
      }
    }
    if (said !== banner.textContent) banner.textContent = said;
    banner.hidden = !said;
  }
  told();
  setInterval(told, 15000);

  var form = document.getElementById("find");
  if (!form) return;
  var words = document.getElementById("words"), found = document.getElementById("found");
  var line = document.getElementById("told"), filters = [].slice.call(form.querySelectorAll("select"));
  var few = document.getElementById("few");
  var shelves = Object.create(null), waiting = Object.create(null), turn = 0, MOST = 50;

  // Files of search/ call this: script tags work where fetch does not, on file://.
  window.dqShelf = function (name, value) { shelves[name] = value; };

  function load(name, then) {
    if (shelves[name] !== undefined) { then(); return; }
    if (waiting[name]) { waiting[name].push(then); return; }
    waiting[name] = [then];
    var script = document.createElement("script");
    function done() {
      if (shelves[name] === undefined) shelves[name] = null;
      var all = waiting[name];
      delete waiting[name];
      all.forEach(function (one) { one(); });
    }
    script.onload = done;
    script.onerror = done;
    script.src = top + "search/" + name + ".js";
    document.head.appendChild(script);
  }

  function each(names, then) {
    var left = names.length;
    if (!left) { then(); return; }
    names.forEach(function (name) { load(name, function () { left -= 1; if (!left) then(); }); });
  }

  // As the builder calls them: the code points of the first two letters, which every file system can hold.
  function shelf(word) {
    return "w-" + Array.from(word).slice(0, 2).map(function (sign) { return sign.codePointAt(0).toString(16); }).join("-");
  }

  function terms() {
    // Letters and digits of any script, without case and marks, as the builder folds them.
    var plain = words.value.toLowerCase().normalize("NFKD").replace(/\p{M}/gu, "").replace(/ß/g, "ss").replace(/ς/g, "σ");
    return (plain.match(/[\p{L}\p{N}]+/gu) || []).filter(function (one) {
      return Array.from(one).length >= 2;
    }).slice(0, 8);
  }

  function search() {
    var mine = ++turn, asked = terms();
    var chosen = filters.map(function (one) { return one.value; }).filter(Boolean);
    if (few) few.hidden = !!(asked.length || chosen.length);
    if (!asked.length && !chosen.length) {
      found.textContent = "";
      line.textContent = words.value.trim() ? "Type at least two letters." : "";
      return;
    }
    each(asked.map(shelf).concat(chosen), function () {
      if (mine === turn) show(asked, chosen);
    });
  }

  function scored(term) {
    // Without a prototype: a product may be called "constructor".
    var held = shelves[shelf(term)], scores = Object.create(null);
    if (!held) return scores;
    Object.keys(held.w).forEach(function (word) {
      if (word.indexOf(term) !== 0) return;
      var whole = word === term ? 2 : 1;
      held.w[word].forEach(function (code) {
        var product = held.p[Math.floor(code / 4)], score = (code % 4) * 2 * whole;
        if (!scores[product[0]] || scores[product[0]].score < score) scores[product[0]] = { product: product, score: score };
      });
    });
    return scores;
  }

  function show(asked, chosen) {
    var sets = asked.map(scored).concat(chosen.map(function (name) {
      var scores = Object.create(null);
      (shelves[name] ? shelves[name].p : []).forEach(function (product) { scores[product[0]] = { product: product, score: 0 }; });
      return scores;
    }));
    var all = Object.keys(sets[0]).filter(function (slug) {
      return sets.every(function (one) { return one[slug]; });
    }).map(function (slug) {
      return { product: sets[0][slug].product, score: sets.reduce(function (sum, one) { return sum + one[slug].score; }, 0) };
    });
    all.sort(function (a, b) { return b.score - a.score || (a.product[1] < b.product[1] ? -1 : 1); });
    found.textContent = "";
    all.slice(0, MOST).forEach(function (one) {
      var item = text("li"), link = text("a");
      link.href = top + "products/" + encodeURIComponent(one.product[0]) + "/index.html";
      link.appendChild(text("bdi", one.product[1]));
      item.appendChild(link);
      if (one.product[2]) { item.appendChild(text("span", "", "quiet")).appendChild(text("bdi", one.product[2])); }
      if (one.product[3]) { item.appendChild(text("p")).appendChild(text("bdi", one.product[3])); }
      found.appendChild(item);
    });
    line.textContent = !all.length ? "No products match. Try fewer or shorter words." :
      all.length === 1 ? "1 product." : all.length + " products" + (all.length > MOST ? "; the first " + MOST + " are shown." : ".");
  }

  var soon;
  words.addEventListener("input", function () { clearTimeout(soon); soon = setTimeout(search, 60); });
  filters.forEach(function (one) { one.addEventListener("change", search); });
  form.addEventListener("submit", function (event) { event.preventDefault(); clearTimeout(soon); search(); });
  search();
})();
