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
  var shelves = Object.create(null), waiting = Object.create(null), turn = 0, MOST = 50, COLUMNS = 5, DOMAINS = 6;

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

  // Letters and digits of any script, without case and marks, as the builder folds them.
  function folded(typed) {
    var plain = typed.toLowerCase().normalize("NFKD").replace(/\p{M}/gu, "").replace(/ß/g, "ss").replace(/ς/g, "σ");
    return plain.match(/[\p{L}\p{N}]+/gu) || [];
  }

  function terms() {
    return folded(words.value).map(function (word) {
      return Array.from(word).slice(0, 40).join("");
    }).filter(function (word) { return Array.from(word).length >= 2; }).slice(0, 8);
  }

  // The address has the words and filters of the search, so that a search can be sent to somebody.
  function readAddress() {
    var query = new URLSearchParams(location.search);
    if (query.has("q")) words.value = query.get("q");
    filters.forEach(function (filter) {
      [].forEach.call(filter.options, function (option) {
        if (option.value && option.dataset.name === query.get(filter.dataset.filter)) filter.value = option.value;
      });
    });
  }

  // `changed` has other values of filters by name; "" is none.
  function address(typed, changed) {
    var query = new URLSearchParams();
    if (typed.trim()) query.set("q", typed.trim());
    filters.forEach(function (filter) {
      var name = filter.dataset.filter;
      var value = filter.value ? filter.options[filter.selectedIndex].dataset.name : "";
      if (changed && changed[name] !== undefined) value = changed[name];
      if (value) query.set(name, value);
    });
    return location.pathname + (query.toString() ? "?" + query : "");
  }

  function link(words, href) {
    var made = text("a", words);
    made.href = href;
    return made;
  }

  function products(count) { return count === 1 ? "1 product" : count + " products"; }

  // Near words: typed with one wrong, missing, extra or swapped letter; with two from eight letters on.
  function errorsAllowed(term) {
    var length = Array.from(term).length;
    return length < 4 ? 0 : length < 8 ? 1 : 2;
  }

  // Index files of words that begin with the first two letters of the term, also swapped or with an extra one.
  function nearShelves(term) {
    var letters = Array.from(term);
    return errorsAllowed(term) ? [[0, 1], [1, 0], [0, 2], [1, 2]].map(function (pair) {
      return shelf(letters[pair[0]] + letters[pair[1]]);
    }) : [];
  }

  // Edit distances of the term to each prefix of the word, where swapped neighbours are one error.
  function distances(term, word) {
    var a = Array.from(term), b = Array.from(word), before = [], row = b.map(function (_, j) { return j; });
    row.push(b.length);
    for (var i = 1; i <= a.length; i++) {
      var next = [i];
      for (var j = 1; j <= b.length; j++) {
        next[j] = Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1));
        if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) next[j] = Math.min(next[j], before[j - 2] + 1);
      }
      before = row;
      row = next;
    }
    return row;
  }

  // Up to three words of the index that the term may mean, nearest first, then those of most products.
  function nearWords(term) {
    var scores = Object.create(null), allowed = errorsAllowed(term);
    nearShelves(term).forEach(function (name) {
      var index = shelves[name] ? shelves[name].w : {};
      Object.keys(index).forEach(function (word) {
        var row = distances(term, word), errors = Math.min.apply(null, row);
        if (errors <= allowed) scores[word] = [errors, row[row.length - 1], -index[word].length];
      });
    });
    return Object.keys(scores).sort(function (a, b) {
      for (var i = 0; i < 3; i++) if (scores[a][i] !== scores[b][i]) return scores[a][i] - scores[b][i];
      return a < b ? -1 : 1;
    }).slice(0, 3);
  }

  function search() {
    var mine = ++turn, asked = terms();
    var chosen = filters.map(function (one) { return one.value; }).filter(Boolean);
    try { history.replaceState(null, "", address(words.value)); } catch (refused) { /* Some browsers refuse it on file://. */ }
    if (few) few.hidden = !!(asked.length || chosen.length);
    if (!asked.length && !chosen.length) {
      found.textContent = "";
      line.textContent = words.value.trim() ? "Type at least two letters." : "";
      return;
    }
    each(asked.map(shelf).concat(chosen), function () {
      if (mine !== turn) return;
      var unmatched = asked.filter(function (term) { return !Object.keys(scored(term)).length; });
      each([].concat.apply([], unmatched.map(nearShelves)), function () {
        if (mine === turn) show(asked, chosen, unmatched);
      });
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

  function show(asked, chosen, unmatched) {
    var near = Object.create(null);
    unmatched.forEach(function (term) { near[term] = nearWords(term); });
    // With every unknown word replaced by its nearest one, or as typed if one of them has none.
    var repaired = unmatched.length > 0 && unmatched.every(function (term) { return near[term].length; });
    if (repaired) asked = asked.map(function (term) { return near[term] ? near[term][0] : term; });
    var sets = asked.map(scored).concat(chosen.map(function (name) {
      var scores = Object.create(null);
      (shelves[name] ? shelves[name].p : []).forEach(function (product) { scores[product[0]] = { product: product, score: 0 }; });
      return scores;
    }));
    var all = common(sets).map(function (slug) {
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
      var columns = columnsOf(one.product[0], asked, sets);
      if (columns.length) {
        var list = item.appendChild(text("p", "Columns: "));
        columns.slice(0, COLUMNS).forEach(function (column, i) {
          if (i) list.append(", ");
          var leads = list.appendChild(text("a"));
          leads.href = link.href + "#c" + column[0];
          leads.appendChild(text("bdi", column[1]));
        });
        if (columns.length > COLUMNS) list.append(" and " + (columns.length - COLUMNS) + " more");
      }
      found.appendChild(item);
    });
    var count = products(all.length);
    count += all.length > MOST ? "; the first " + MOST + " are shown." : ".";
    line.textContent = all.length && !unmatched.length ? count : "No product matches " +
      (words.value.trim() ? "'" + words.value.trim() + "'" : "these filters") + ". ";
    if (all.length && !unmatched.length) line.append(domainsOf(all));
    if (repaired) suggest(asked, near, unmatched, all.length ? " " + count : " It matches none with these words and filters either.");
    else if (unmatched.length || !all.length) line.append(advice(asked, chosen, unmatched));
  }

  // "Did you mean orders or order?", each a link to its search.
  function suggest(asked, near, unmatched, rest) {
    var queries = unmatched.length > 1 ? [asked.join(" ")] : near[unmatched[0]].map(function (word) {
      return asked.map(function (term) { return term === near[unmatched[0]][0] ? word : term; }).join(" ");
    });
    line.append("Did you mean ");
    queries.forEach(function (query, i) {
      line.append(i ? (i === queries.length - 1 ? " or " : ", ") : "", link(query, address(query)));
    });
    line.append("?" + rest);
  }

  // Products that are in all of these sets.
  function common(sets) {
    return Object.keys(sets[0] || {}).filter(function (slug) {
      return sets.every(function (one) { return one[slug]; });
    });
  }

  // Columns of a product with a word that begins with one of the terms.
  function columnsOf(slug, asked, sets) {
    var columns = Object.create(null);
    asked.forEach(function (term, i) {
      (sets[i][slug].product[4] || []).forEach(function (column) {
        if (folded(column[1]).some(function (word) { return word.indexOf(term) === 0; })) columns[column[0]] = column;
      });
    });
    return Object.keys(columns).map(function (number) { return columns[number]; });
  }

  // The domains of the found products with their numbers, each a link to the search in it.
  function domainsOf(all) {
    var counts = Object.create(null), part = document.createDocumentFragment();
    all.forEach(function (one) { if (one.product[2]) counts[one.product[2]] = (counts[one.product[2]] || 0) + 1; });
    var names = Object.keys(counts).sort(function (a, b) { return counts[b] - counts[a] || (a < b ? -1 : 1); });
    if (names.length < 2) return part;
    names.slice(0, DOMAINS).forEach(function (name, i) {
      part.append(i ? ", " : " ", link(name, address(words.value, { domain: name })), " " + counts[name]);
    });
    if (names.length > DOMAINS) part.append(" and " + (names.length - DOMAINS) + " more domains");
    return part;
  }

  function advice(asked, chosen, unmatched) {
    var unknown = unmatched.map(function (term) { return "'" + term + "'"; }).join(" and ");
    if (unmatched.length && unmatched.length < asked.length) return "No name, column or description has " + unknown + ": try without.";
    if (unmatched.length) return "Try a shorter word, or open a domain below.";
    var part = document.createDocumentFragment(), without = common(asked.map(scored)).length;
    if (chosen.length && without) {
      part.append("Without the filters: ", link(products(without), location.pathname + "?" + new URLSearchParams({ q: words.value.trim() })), ".");
    } else if (chosen.length && !asked.length) {
      part.append("Set a filter to 'any'.");
    } else {
      part.append("Each word alone: ");
      asked.forEach(function (term, i) {
        part.append(i ? ", " : "", link(term, address(term)), " " + products(Object.keys(scored(term)).length));
      });
      part.append(".");
    }
    return part;
  }

  var soon;
  words.addEventListener("input", function () { clearTimeout(soon); soon = setTimeout(search, 60); });
  filters.forEach(function (one) { one.addEventListener("change", search); });
  form.addEventListener("submit", function (event) { event.preventDefault(); clearTimeout(soon); search(); });
  readAddress();
  search();
})();
